package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The errors of memory accesses. wrap adds the kernel and the instruction.

// misaligned returns the error of an access of n bytes whose address must be a multiple
// of unit.
func misaligned(n uint64, space ir.Space, addr, unit uint64) error {
	return fmt.Errorf("%w: %d bytes at %s address %#x, want a multiple of %d", abi.ErrMisaligned, n, space, addr, unit)
}

// outside returns the error of an access of n bytes beyond the end of a space of size
// bytes.
func outside(n uint64, space ir.Space, addr, size uint64) error {
	return fmt.Errorf("%w: %d bytes at %s address %#x, want it in the space's %d bytes", abi.ErrIllegalAddress, n, space, addr, size)
}

// unallocated returns the error of an access of n bytes that are not in one allocation
// of device memory.
func unallocated(n, addr uint64) error {
	return fmt.Errorf("%w: %d bytes at global address %#x, want them in one allocation", abi.ErrIllegalAddress, n, addr)
}

// errParameters is the error of a write to the parameters of a kernel through a generic
// address.
var errParameters = fmt.Errorf("%w: write to the parameters of the kernel, which are read-only", abi.ErrIllegalAddress)
