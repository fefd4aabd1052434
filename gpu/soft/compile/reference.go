package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Reference is a module variable of type .texref or .surfref: an object that the driver
// binds (PTX ISA, "Texture, Sampler, and Surface Types"). Its address, which
// instructions and initializers name, is ir.BoundObject plus its index in References.
type Reference struct {
	Name    string
	Surface bool
}

// References returns the references of a linked module.
func (l *Module) References() []Reference { return l.references }

// placeReferences numbers the references.
func (l *Module) placeReferences() error {
	for _, v := range l.mod.Vars {
		if v.Space != ptx.Global || v.Type != ptx.TexRef && v.Type != ptx.SurfRef || v.Size != uint64(v.Type.Size()) {
			continue
		}
		if v.Extern {
			return unresolved(v)
		}
		l.address[v] = ir.BoundObject | uint64(len(l.references))
		l.references = append(l.references, Reference{v.Name, v.Type == ptx.SurfRef})
	}
	return nil
}
