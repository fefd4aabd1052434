package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// opened is memory of another process, mapped in this one.
type opened struct{ handle, size uint64 }

// fileDescriptor is CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
const fileDescriptor = 1

// shares reports whether the card's memory can be shared with other processes.
func (d *driver) shares() bool {
	return d.maps() && d.lib.has(cuMemExportToShareableHandle) && d.lib.has(cuMemImportFromShareableHandle)
}

// Share implements worker.Sharer. The block is moved into memory that can be exported, in
// one piece; in the meantime the card needs room for both. Allocations that are together
// in a slab cannot be shared, because the others would be shared with them.
func (c *context) Share(address uint64) (worker.Shared, error) {
	if !c.d.shares() {
		return worker.Shared{}, fmt.Errorf("%w: the GPU does not support sharing memory", abi.ErrNotSupported)
	}
	if err := c.failed(); err != nil {
		return worker.Shared{}, err
	}
	v := c.virtual
	v.move.Lock()
	defer v.move.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	i, found := slices.BinarySearchFunc(v.blocks, address, func(b *block, a uint64) int { return cmp.Compare(b.address, a) })
	switch {
	case !found || len(v.blocks[i].used) != 1 || v.evicted && !v.blocks[i].shared:
		return worker.Shared{}, abi.ErrInvalidValue
	case v.blocks[i].small:
		return worker.Shared{}, fmt.Errorf("%w: on this GPU only allocations of %d bytes or more can be shared", abi.ErrNotSupported, slabSize/2)
	}
	b := v.blocks[i]
	if !b.shared {
		if err := c.replace(b); err != nil {
			return worker.Shared{}, err
		}
	}
	size := b.used[0].size // for mapped memory
	if span, ok := c.d.memory.find(address, 1); ok {
		size = span.size
	}
	fd := newOut[int32]()
	defer fd.free()
	if err := c.call(cuMemExportToShareableHandle, fd.at(), uintptr(b.pieces[0].handle), fileDescriptor, 0); err != nil {
		return worker.Shared{}, err
	}
	return worker.Shared{Size: size, File: os.NewFile(uintptr(*fd.value), "memory of a card")}, nil
}

// replace replaces a block's pieces by one piece of memory that can be exported, with
// the same contents; v.mu is held and no work runs.
func (c *context) replace(b *block) error {
	handle, err := c.createFor(b.size, fileDescriptor)
	if err != nil {
		return err
	}
	if err := c.fill(b, handle); err != nil {
		return errors.Join(err, c.call(cuMemRelease, uintptr(handle)))
	}
	var errs []error
	for _, p := range b.pieces {
		errs = append(errs, c.hideAliases(p), c.detach(p, p.handle))
	}
	whole := &piece{address: b.address, size: b.size, of: b, handle: handle}
	b.pieces, b.shared = []*piece{whole}, true
	errs = append(errs, c.attach(whole, handle))
	for _, a := range b.aliases {
		errs = append(errs, c.showPiece(a, whole, handle))
	}
	if err := errors.Join(errs...); err != nil {
		c.poison(err) // its contents are incomplete on both sides
		return err
	}
	return nil
}

// fill copies the contents of a block into new memory, which is mapped in the
// meantime.
func (c *context) fill(b *block, handle uint64) error {
	at, err := c.virtual.window.Allocate(b.size, c.virtual.granule)
	if err != nil {
		return err
	}
	p := &piece{address: at, size: b.size}
	if err = c.attach(p, handle); err == nil {
		err = errors.Join(
			c.call(cuMemcpyDtoDAsync, uintptr(at), uintptr(b.address), uintptr(b.size), c.zero),
			c.call(cuStreamSynchronize, c.zero),
			c.call(cuMemUnmap, uintptr(at), uintptr(b.size)))
	}
	return errors.Join(err, c.virtual.window.Free(at))
}

// OpenShared implements worker.Sharer. libcuda refuses a descriptor that is not of a
// card.
func (c *context) OpenShared(address uint64, m worker.Shared) error {
	if !c.d.shares() {
		return fmt.Errorf("%w: the GPU does not support sharing memory", abi.ErrNotSupported)
	}
	if err := c.failed(); err != nil {
		return err
	}
	v := c.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, twice := v.opened[address]; twice || m.Size == 0 || m.Size > c.d.info.TotalMemory {
		return abi.ErrInvalidValue
	}
	handle := newOut[uint64]()
	defer handle.free()
	if err := c.call(cuMemImportFromShareableHandle, handle.at(), m.File.Fd(), fileDescriptor); err != nil {
		return err
	}
	o := opened{*handle.value, roundUp(m.Size, v.granule)}
	if err := c.attach(&piece{address: address, size: o.size}, o.handle); err != nil {
		return errors.Join(err, c.call(cuMemRelease, uintptr(o.handle)))
	}
	if v.opened == nil {
		v.opened = map[uint64]opened{}
	}
	v.opened[address] = o
	c.d.memory.add(span{start: address, size: m.Size, mapped: true})
	return nil
}

// ImportShared implements worker.Sharer. It fails: only this context's own blocks can be
// mapped, as the device's attributes report.
func (c *context) ImportShared(worker.Shared) (uint64, error) {
	return 0, fmt.Errorf("%w: memory of another process cannot be mapped on this GPU", abi.ErrNotSupported)
}

// CloseShared implements worker.Sharer. Like MemUnmap, it unmaps when no work
// runs.
func (c *context) CloseShared(address uint64, done func()) error {
	v := c.virtual
	if v == nil {
		return abi.ErrInvalidValue
	}
	v.mu.Lock()
	_, there := v.opened[address]
	v.mu.Unlock()
	if !there {
		return abi.ErrInvalidValue
	}
	return c.removeWhenDrained(address, func() { c.unopen(address) }, done)
}

func (c *context) unopen(address uint64) {
	v := c.virtual
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.opened[address]
	delete(v.opened, address)
	if err := c.detach(&piece{address: address, size: o.size}, o.handle); err != nil {
		c.poison(err) // libcuda keeps it until the context is destroyed
	}
}

// dropOpened closes all opened memory when the context is destroyed; v.mu is
// held.
func (c *context) dropOpened() {
	for address, o := range c.virtual.opened {
		c.d.memory.removeMapped(address)
		_ = c.detach(&piece{address: address, size: o.size}, o.handle)
	}
	c.virtual.opened = nil
}
