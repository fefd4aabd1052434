package device

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// reference is a texture or surface reference of a module.
type reference struct {
	m  *module
	at int // index in module.bound
}

var _ worker.References = (*Context)(nil)

// ReferenceFind implements worker.References.
func (c *Context) ReferenceFind(mod worker.Module, name string, surface bool) (worker.Reference, error) {
	m, ok := mod.(*module)
	if !ok || m.c != c {
		return nil, abi.ErrInvalidHandle
	}
	for i, r := range m.references {
		if r.Name == name && r.Surface == surface {
			return &reference{m, i}, nil
		}
	}
	return nil, abi.ErrNotFound
}

// ReferenceBind implements worker.References. Launches that were made before keep the
// old binding.
func (c *Context) ReferenceBind(ref worker.Reference, a abi.TextureCreate, of worker.Array) error {
	r, ok := ref.(*reference)
	if !ok || r.m.c != c {
		return abi.ErrInvalidHandle
	}
	t, err := c.describe(&a, of)
	if err != nil {
		return err
	}
	if err := sample(&t.Texture, &a); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	bound := slices.Clone(r.m.bound)
	if bound == nil {
		bound = make([]*exec.Texture, len(r.m.references))
	}
	bound[r.at] = t
	r.m.bound = bound
	return nil
}

// boundTo returns the textures that are now bound to the references of a module.
func (c *Context) boundTo(m *module) []*exec.Texture {
	if len(m.references) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return m.bound
}
