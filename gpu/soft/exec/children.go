package exec

import (
	"encoding/binary"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Children launches kernels that a kernel launches. It is safe for concurrent use.
type Children interface {
	// Buffer returns the size in bytes of the parameters of the kernel at a code address,
	// and false if there is none.
	Buffer(code uint64) (params uint64, ok bool)
	// Launch launches a kernel, whose parameters it does not retain. The result is a
	// cudaError_t.
	Launch(c Child) uint32
}

// Child is a kernel that a kernel launches.
type Child struct {
	Code        uint64
	Grid, Block [3]uint32
	Shared      uint32 // bytes of dynamic shared memory
	Stream      uint64
	Params      []byte
}

// childHead is the size in bytes of a launch buffer before the parameters: the code address,
// the grid, the block and the dynamic shared memory, as gpu/soft/compile/launch.ptx stores
// them, and reserved bytes, after which parameters of any alignment may follow.
const childHead = 64

// Errors of a launch in a kernel (CUDA Runtime API, cudaError_t).
const (
	childInvalid = 98 // cudaErrorInvalidDeviceFunction
	childMemory  = 1  // cudaErrorInvalidValue: not a buffer
)

func launchBuffer(o *ir.LaunchBuffer) step {
	result, kernel := word{o.Result}, word{o.Kernel}
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			at, err := m.launchBuffer(kernel.get(m, l))
			result.set(m, l, at)
			return err
		})
	})
}

// launchBuffer returns the address of a new buffer for a kernel, or 0.
func (m *machine) launchBuffer(code uint64) (uint64, error) {
	if m.env.Children == nil || m.env.Heap == nil {
		return 0, nil
	}
	params, ok := m.env.Children.Buffer(code)
	if !ok {
		return 0, nil
	}
	at := m.env.Heap.alloc(childHead + params)
	if at == 0 {
		return 0, nil
	}
	b, err := SliceRegion(m.env.table, at, childHead)
	if err == nil {
		binary.LittleEndian.PutUint64(b, code)
	}
	return at, err
}

func launchKernel(o *ir.LaunchKernel) step {
	result, buffer, stream := word{o.Result}, word{o.Buffer}, word{o.Stream}
	return masked(func(m *machine, act []uint32) error {
		m.did |= didChange
		return eachLaneErr(act, func(l int) error {
			code, err := m.launchChild(buffer.get(m, l), stream.get(m, l))
			result.set(m, l, uint64(code))
			return err
		})
	})
}

// launchChild launches the kernel that a buffer describes, and frees the buffer.
func (m *machine) launchChild(at, stream uint64) (uint32, error) {
	if m.env.Children == nil || m.env.Heap == nil {
		return childInvalid, nil
	}
	head, err := SliceRegion(m.env.table, at, childHead)
	if err != nil {
		return 0, err
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(head[i:]) }
	c := Child{Code: binary.LittleEndian.Uint64(head), Grid: [3]uint32{word(8), word(12), word(16)}, Block: [3]uint32{word(20), word(24), word(28)},
		Shared: word(32), Stream: stream}
	size, ok := m.env.Children.Buffer(c.Code)
	if !ok {
		return childInvalid, nil
	}
	if c.Params, err = SliceRegion(m.env.table, at+childHead, size); err != nil {
		return 0, err
	}
	c.Params = slices.Clone(c.Params) // released memory may be allocated by another block
	if !m.env.Heap.release(at) {
		return childMemory, nil
	}
	return m.env.Children.Launch(c), nil
}
