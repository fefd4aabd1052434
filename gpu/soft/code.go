package soft

import "github.com/basalt-gpu/basalt/gpu/ptx"

// codeStep is between the addresses of two functions. They lie below every
// address window, so none is an address of memory.
const codeStep = 16

// functions gives an address to each function whose address a module uses, and
// reports whether one uses the device's heap. The addresses are those of one
// module in the context only.
func (c *Context) functions(l *layout) (heap bool) {
	take := func(f *ptx.Func) {
		if _, ok := l.code[f]; f == nil || ok || f.Extern || f.Entry {
			return
		}
		c.lastCode += codeStep
		l.code[f] = c.lastCode
		l.taken = append(l.taken, f)
	}
	for _, v := range l.mod.Vars {
		for _, r := range v.Relocs {
			take(r.Func)
		}
	}
	for _, f := range l.mod.Funcs {
		for i := range f.Body {
			in := &f.Body[i]
			if b := builtinOf(in); b != nil && b.Name != "vprintf" {
				heap = true
			}
			if in.Op == "call" {
				continue
			}
			for _, a := range in.Args {
				if a.Kind == ptx.KindFunc {
					take(a.Func)
				}
			}
		}
	}
	return heap
}
