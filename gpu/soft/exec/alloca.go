package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// alloca allocates memory below the last allocation of each lane. The pointer may have
// any value, as stackrestore sets it.
func alloca(o *ir.Alloca) step {
	return masked(func(m *machine, act []uint32) error {
		return eachLaneErr(act, func(l int) error {
			top, size := uint32(m.get(o.Pointer, l)), m.get(o.Size, l)
			if top < o.From || top > o.To {
				return fmt.Errorf("%w: alloca: the stack pointer is %#x, want a value that stacksave has returned", abi.ErrLaunchFailed, top)
			}
			free := uint64(top - o.From)
			at := (uint64(top) - min(size, free)) &^ uint64(o.Align-1)
			if size > free || at < uint64(o.From) {
				return fmt.Errorf("%w: stack overflow: alloca of %d bytes with alignment %d, want at most the %d that are left of the thread's %d", abi.ErrLaunchFailed, size, o.Align, free, o.To-o.From)
			}
			m.set(o.Pointer, l, at)
			m.set(o.D, l, at)
			return nil
		})
	})
}
