package oracle

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// stackBytes is the size of the memory of alloca of a thread.
const stackBytes = 32 << 10

// allocate executes alloca, stacksave and stackrestore (PTX ISA, "Stack Manipulation
// Instructions"). The stack grows down, and its pointer is the last allocation.
func (t *thread) allocate(in *ptx.Inst) error {
	if t.stack == 0 {
		t.local = append(t.local, make([]byte, stackBytes)...)
		t.stack = uint64(len(t.local))
		for _, f := range t.frames {
			f.stack = t.stack
		}
	}
	switch ty := memType(in); in.Op {
	case "stacksave":
		t.set(&in.Args[0], t.stack)
	case "stackrestore":
		t.stack = t.val(&in.Args[0], ty)
	default:
		align, size := uint64(8), t.val(&in.Args[1], ty)
		if len(in.Args) > 2 {
			align = max(align, in.Args[2].Bits)
		}
		if size > t.stack {
			return fmt.Errorf("stack overflow: alloca of %d bytes", size)
		}
		t.stack = (t.stack - size) / align * align
		t.set(&in.Args[0], t.stack)
	}
	return nil
}
