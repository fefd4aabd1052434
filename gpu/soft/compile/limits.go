package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// maxExpanded bounds what the kernels of a module come to together, in
// instructions and registers: each has what it calls compiled into itself, so a
// few kilobytes of source could ask for a thousand copies of a large function.
// Each takes some 200 bytes of memory, 104 MiB together, and half as much as garbage
// while a module is compiled; what its tables take is limited in gpu/ptx.
const maxExpanded = 512 << 10

// expand counts a function before a kernel has it compiled into itself. Kernels
// that come after the limit has been reached are refused at once.
func (l *Module) expand(f *ptx.Func) error {
	l.expanded += len(f.Body) + len(f.Regs)
	if l.expanded > maxExpanded {
		return &ptx.Error{Line: f.Line, Msg: fmt.Sprintf("module too large: at function %s its kernels, with what they call, have %d instructions and registers, want at most %d", f.Name, l.expanded, maxExpanded)}
	}
	return nil
}
