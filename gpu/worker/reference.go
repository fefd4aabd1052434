package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// Reference is a texture or surface reference of a module: a variable of the opaque
// type .texref or .surfref.
type Reference interface{}

// References is a Context with Textures whose modules have references (CUDA driver API,
// "Texture Reference Management", "Surface Reference Management").
type References interface {
	Textures
	// ReferenceFind returns the reference with that name. It is destroyed with its
	// module. The error is abi.ErrNotFound for a name that is not a reference of
	// that kind.
	ReferenceFind(m Module, name string, surface bool) (Reference, error)
	// ReferenceBind sets what later launches find in the reference. Earlier
	// launches keep what they had. a and of are as for TextureCreate.
	ReferenceBind(r Reference, a abi.TextureCreate, of Array) error
}

type referenceObject struct {
	ctx       *contextObject
	reference Reference
	surface   bool
}

func (r *referenceObject) owner() *contextObject { return r.ctx }

// references returns the context's driver, if it supports references in modules.
func (x *contextObject) references() (References, error) {
	if r, ok := x.driver.(References); ok {
		return r, nil
	}
	return nil, abi.ErrNotSupported
}

func (s *Session) referenceFind(c *command) error {
	a := abi.DecodeReferenceFind(c.argBytes)
	m, err := lookup[*moduleObject](&s.handles, a.Module)
	if err != nil {
		return err
	}
	if err := c.use(m.ctx); err != nil {
		return err
	}
	driver, err := m.ctx.references()
	if err != nil {
		return err
	}
	if a.Surface > 1 || a.Zero != 0 {
		return abi.ErrInvalidValue
	}
	if err := s.handles.free(a.Reference, 1); err != nil {
		return err
	}
	r, err := driver.ReferenceFind(m.module, string(c.inlineBytes), a.Surface == 1)
	if err != nil {
		return err
	}
	m.references = append(m.references, a.Reference)
	s.handles.add(a.Reference, m.ctx, &referenceObject{m.ctx, r, a.Surface == 1})
	return nil
}

// referenceBind has the arguments of TextureCreate, with the reference in place of
// the new handle.
func (s *Session) referenceBind(c *command) error {
	a := abi.DecodeTextureCreate(c.argBytes)
	r, err := lookup[*referenceObject](&s.handles, a.Texture)
	if err != nil {
		return err
	}
	if r.ctx.handle != a.Ctx {
		return abi.ErrInvalidHandle
	}
	if err := c.use(r.ctx); err != nil {
		return err
	}
	if err := a.Check(); err != nil {
		return err
	}
	if (a.Surface == 1) != r.surface {
		return abi.ErrInvalidValue
	}
	of, err := s.textured(r.ctx, &a)
	if err != nil {
		return err
	}
	driver, err := r.ctx.references()
	if err != nil {
		return err
	}
	return driver.ReferenceBind(r.reference, a, of)
}
