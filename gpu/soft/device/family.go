package device

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Kernels that kernels launch (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism"). They
// run when the kernel that launched them has ended, one after another in the order of their
// launches, each with those that it launches: a program cannot observe more than that a
// kernel ends after its children, and that those in one stream are in order.

// The limits of a device: kernels that have been launched and have not begun, in one launch
// of the program (cudaLimitDevRuntimePendingLaunchCount), and how deep they are nested.
const (
	maxPending = 2048
	maxDepth   = 24
)

// Streams with a meaning of their own (cuda_device_runtime_api.h).
const streamTailLaunch = 3 // after all other children

// Errors of a launch in a kernel (CUDA Runtime API, cudaError_t).
const (
	errInvalidConfiguration = 9
	errMaxDepth             = 65  // cudaErrorLaunchMaxDepthExceeded
	errPendingCount         = 69  // cudaErrorLaunchPendingCountExceeded
	errInvalidFunction      = 98  // cudaErrorInvalidDeviceFunction
	errNoKernelImage        = 209 // cudaErrorNoKernelImageForDevice
	errLaunchResources      = 701 // cudaErrorLaunchOutOfResources
)

// family is a kernel with the kernels that it has launched.
type family struct {
	k       *kernel
	depth   int
	pending *atomic.Int64 // of all families of one launch of the program

	mu             sync.Mutex
	children, tail []*kernel
}

func newFamily(k *kernel, parent *family) *family {
	if parent == nil {
		return &family{k: k, pending: new(atomic.Int64)}
	}
	return &family{k: k, depth: parent.depth + 1, pending: parent.pending}
}

// Buffer implements exec.Children.
func (f *family) Buffer(code uint64) (uint64, bool) {
	fn := f.k.f.m.code[code]
	if fn == nil {
		return 0, false
	}
	size := uint64(0)
	for _, p := range fn.info.Params {
		size = max(size, uint64(p.Offset)+uint64(p.Size))
	}
	return size, true
}

// Launch implements exec.Children.
func (f *family) Launch(child exec.Child) uint32 {
	c, fn := f.k.c, f.k.f.m.code[child.Code]
	if fn == nil {
		return errInvalidFunction
	}
	if f.depth+1 >= maxDepth {
		return errMaxDepth
	}
	if fn.load(); fn.refused != nil {
		return errNoKernelImage
	}
	l := worker.Launch{Grid: child.Grid, Block: child.Block, Shared: child.Shared, Params: child.Params}
	if err := c.checkLaunch(fn, &l); err != nil {
		if errors.Is(err, abi.ErrLaunchResources) {
			return errLaunchResources
		}
		return errInvalidConfiguration
	}
	k, err := c.newKernel(fn, &l, f)
	if err != nil {
		return errInvalidConfiguration
	}
	if f.pending.Add(1) > maxPending {
		f.pending.Add(-1)
		return errPendingCount
	}
	f.add(k, child.Stream)
	return 0
}

func (f *family) add(k *kernel, stream uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stream == streamTailLaunch {
		f.tail = append(f.tail, k)
	} else {
		f.children = append(f.children, k)
	}
}

// runFamily executes a kernel and then those that it has launched.
func (c *Context) runFamily(k *kernel) error {
	if err := c.runKernel(k); err != nil || k.family == nil {
		return err
	}
	f := k.family
	for _, list := range []*[]*kernel{&f.children, &f.tail} {
		for len(*list) > 0 {
			child := (*list)[0]
			*list = (*list)[1:]
			f.pending.Add(-1)
			if err := c.runFamily(child); err != nil {
				return err
			}
		}
	}
	return nil
}
