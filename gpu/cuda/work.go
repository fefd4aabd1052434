package cuda

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// MemAlloc implements worker.Context. The memory is zero when it returns, because
// it may have been another guest's. Zeroing waits only for the card's memory.
func (c *context) MemAlloc(size uint64) (uint64, error) {
	c.calls.RLock()
	defer c.calls.RUnlock()
	if err := c.failed(); err != nil {
		return 0, err
	}
	if size == 0 || size > c.d.info.TotalMemory {
		return 0, abi.ErrOutOfMemory // also prevents an overflow of the rounding
	}
	alloc := c.alloc
	if c.virtual == nil {
		alloc = c.allocPinned
	}
	address, err := alloc(size)
	if err != nil {
		return 0, err
	}
	c.d.memory.add(span{start: address, size: size})
	c.mu.Lock()
	c.allocated[address] = true
	c.mu.Unlock()
	return address, nil
}

// allocPinned allocates memory that stays on the card.
func (c *context) allocPinned(size uint64) (uint64, error) {
	p := newOut[uint64]()
	defer p.free()
	if err := c.call(cuMemAlloc, p.at(), uintptr(size)); err != nil {
		return 0, err
	}
	if err := c.clear(*p.value, size, c.zero); err != nil {
		_ = c.call(cuMemFree, uintptr(*p.value))
		return 0, err
	}
	return *p.value, nil
}

// check refuses addresses outside memory, unless the context has a more severe
// error.
func (c *context) check(address, size uint64) error {
	if err := c.failed(); err != nil || size == 0 {
		return err
	}
	return c.d.memory.check(address, size)
}

// MemFree implements worker.Context.
func (c *context) MemFree(address uint64) error {
	if err := c.d.memory.remove(address, false); err != nil {
		return err
	}
	c.mu.Lock()
	delete(c.allocated, address)
	c.mu.Unlock()
	return c.whenDrained(func() {
		if c.virtual != nil {
			c.unalloc(address)
		} else {
			_ = c.call(cuMemFree, uintptr(address))
		}
	})
}

// CopyHtoD implements worker.Context.
func (c *context) CopyHtoD(s worker.Stream, dst uint64, src []byte, done func(error)) error {
	if err := c.check(dst, uint64(len(src))); err != nil {
		return err
	}
	if from, ok := c.hostAddress(src); ok {
		return c.push(s, &op{done: done, submit: func(cu uintptr) error {
			return c.call(cuMemcpyHtoDAsync, uintptr(dst), from, uintptr(len(src)), cu)
		}})
	}
	return c.staged(s, src, true, done, func(k *chunk, cu uintptr, at, n int) error {
		return c.call(cuMemcpyHtoDAsync, uintptr(dst)+uintptr(at), k.address, uintptr(n), cu)
	})
}

// CopyDtoH implements worker.Context.
func (c *context) CopyDtoH(s worker.Stream, dst []byte, src uint64, done func(error)) error {
	if err := c.check(src, uint64(len(dst))); err != nil {
		return err
	}
	if to, ok := c.hostAddress(dst); ok {
		return c.push(s, &op{done: done, submit: func(cu uintptr) error {
			return c.call(cuMemcpyDtoHAsync, to, uintptr(src), uintptr(len(dst)), cu)
		}})
	}
	return c.staged(s, dst, false, done, func(k *chunk, cu uintptr, at, n int) error {
		return c.call(cuMemcpyDtoHAsync, k.address, uintptr(src)+uintptr(at), uintptr(n), cu)
	})
}

// CopyDtoD implements worker.Context.
func (c *context) CopyDtoD(s worker.Stream, dst, src, size uint64, done func(error)) error {
	if err := c.check(dst, size); err != nil {
		return err
	}
	if err := c.check(src, size); err != nil {
		return err
	}
	return c.push(s, &op{done: done, submit: func(cu uintptr) error {
		return c.call(cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(size), cu)
	}})
}

// Memset implements worker.Context.
func (c *context) Memset(s worker.Stream, dst uint64, value, width uint32, count uint64, done func(error)) error {
	f, ok := map[uint32]function{1: cuMemsetD8Async, 2: cuMemsetD16Async, 4: cuMemsetD32Async}[width]
	if !ok {
		return fmt.Errorf("%w: invalid memset element size %d", abi.ErrInvalidValue, width)
	}
	if count > 1<<48 {
		return fmt.Errorf("%w: invalid memset count %d", abi.ErrInvalidValue, count)
	}
	if err := c.check(dst, count*uint64(width)); err != nil {
		return err
	}
	return c.push(s, &op{done: done, submit: func(cu uintptr) error {
		return c.call(f, uintptr(dst), uintptr(value), uintptr(count), cu)
	}})
}

// Launch implements worker.Context.
func (c *context) Launch(s worker.Stream, f worker.Function, l worker.Launch, done func(error)) error {
	k, ok := f.(*kernel)
	if !ok {
		return abi.ErrInvalidHandle
	}
	if err := c.checkDimensions(l); err != nil {
		return err
	}
	params := append([]byte(nil), l.Params...)
	attributes, bound := c.attributesOf(l), k.module.bound
	return c.push(s, &op{done: done, launches: 1, prints: k.module.prints, submit: func(cu uintptr) error {
		if err := c.bind(k.module, bound); err != nil {
			return err
		}
		return withExtra(params, func(extra uintptr) error {
			if l.Cooperative || l.Cluster != [3]uint32{} || len(attributes) > 0 {
				// cuLaunchCooperativeKernel takes no parameter buffer.
				return withConfig(l, attributes, cu, func(config uintptr) error {
					return c.passOn(cuLaunchKernelEx, config, k.handle, 0, extra)
				})
			}
			return c.call(cuLaunchKernel, k.handle,
				uintptr(l.Grid[0]), uintptr(l.Grid[1]), uintptr(l.Grid[2]),
				uintptr(l.Block[0]), uintptr(l.Block[1]), uintptr(l.Block[2]),
				uintptr(l.Shared), cu, 0, extra)
		})
	}})
}

// MaxActiveClusters implements worker.ClusterOccupancy.
func (c *context) MaxActiveClusters(f worker.Function, l worker.Launch) (int32, error) {
	return c.clusters(cuOccupancyMaxActiveClusters, f, l)
}

// MaxClusterSize implements worker.ClusterOccupancy.
func (c *context) MaxClusterSize(f worker.Function, l worker.Launch) (int32, error) {
	return c.clusters(cuOccupancyMaxPotentialClusterSize, f, l)
}

func (c *context) clusters(ask function, f worker.Function, l worker.Launch) (int32, error) {
	k, ok := f.(*kernel)
	if !ok {
		return 0, abi.ErrInvalidHandle
	}
	n := newOut[int32]()
	defer n.free()
	err := withConfig(l, nil, 0, func(config uintptr) error { return c.passOn(ask, n.at(), k.handle, config) })
	if err != nil {
		return 0, err
	}
	return *n.value, nil
}

// attributesOf returns the attributes of a launch that are passed to libcuda:
// none if it has no function for them, and no window over memory that was freed
// or belongs to others.
func (c *context) attributesOf(l worker.Launch) (list []abi.StreamAttrValue) {
	if !c.d.lib.has(cuLaunchKernelEx) {
		return nil
	}
	for _, a := range l.Attributes[:min(len(l.Attributes), abi.MaxGraphAttributes)] {
		if c.check(a.AccessPolicyWindowBasePtr, a.AccessPolicyWindowNumBytes) == nil {
			list = append(list, a)
		}
	}
	return list
}

// CUdevice_attribute, from cuda.h.
const (
	attributeMaxThreadsPerBlock = 1
	attributeMaxBlockDimX       = 2 // to 4: Z
	attributeMaxGridDimX        = 5 // to 7: Z
	attributeMaxSharedOptin     = 97
)

// checkDimensions returns at once the error that libcuda would return at
// submission.
func (c *context) checkDimensions(l worker.Launch) error {
	a := c.d.info.Attributes
	threads := uint64(1)
	for i := range 3 {
		if l.Grid[i] == 0 || l.Block[i] == 0 || uint64(l.Grid[i]) > uint64(a[attributeMaxGridDimX+i]) || uint64(l.Block[i]) > uint64(a[attributeMaxBlockDimX+i]) {
			return fmt.Errorf("%w: invalid grid %v or block %v", abi.ErrInvalidValue, l.Grid, l.Block)
		}
		threads *= uint64(l.Block[i])
	}
	if threads > uint64(a[attributeMaxThreadsPerBlock]) {
		return fmt.Errorf("%w: too many threads per block: %d", abi.ErrInvalidValue, threads)
	}
	if l.Shared > uint32(a[attributeMaxSharedOptin]) {
		return fmt.Errorf("%w: too much shared memory: %d bytes", abi.ErrInvalidValue, l.Shared)
	}
	return nil
}
