package compile

import "github.com/basalt-gpu/basalt/gpu/ptx"

// maxExpanded bounds what the kernels of a module come to together, in
// instructions and registers: each has what it calls compiled into itself, so a
// few kilobytes of source could ask for a thousand copies of a large function.
// Each takes some 200 bytes of memory, 104 MiB together, and half as much as garbage
// while a module is compiled; what its tables take is limited in gpu/ptx.
const maxExpanded = 512 << 10

// expand counts a kernel with what it calls, before it is compiled.
func (l *Module) expand(f *ptx.Func, frames map[*ptx.Func]*frame) error {
	for called := range frames {
		l.expanded += len(called.Body) + len(called.Regs)
	}
	if l.expanded > maxExpanded {
		return &ptx.Error{Line: f.Line, Msg: "module too large: with what they call, its kernels up to " + f.Name + " have too many instructions and registers"}
	}
	return nil
}
