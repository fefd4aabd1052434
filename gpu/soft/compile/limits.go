package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// maxExpanded limits the sum of instructions and registers of a module's kernels. Each
// kernel includes the functions that it calls, so a few kilobytes of source could
// request a thousand copies of a large function. Each takes about 200 bytes of memory,
// 104 MiB together, and half as much garbage while a module is compiled; gpu/ptx limits
// the size of its tables.
const maxExpanded = 512 << 10

// expand counts a function that is about to be compiled into a kernel. It returns an
// error if the limit is exceeded, also for all later kernels.
func (l *Module) expand(f *ptx.Func) error {
	l.expanded += len(f.Body) + len(f.Regs)
	if l.expanded > maxExpanded {
		return &ptx.Error{Line: f.Line, Msg: fmt.Sprintf("module too large: at function %s its kernels, with what they call, have %d instructions and registers, want at most %d", f.Name, l.expanded, maxExpanded)}
	}
	return nil
}
