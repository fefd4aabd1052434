package fakedriver

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// array is memory with the rows of all levels in order.
type array struct {
	address uint64
	desc    abi.ArrayCreate
}

var _ worker.Textures = (*Context)(nil)

// ArrayCreate implements worker.Textures.
func (c *Context) ArrayCreate(a abi.ArrayCreate) (worker.Array, error) {
	address, err := c.MemAlloc(a.Bytes())
	return &array{address, a}, err
}

// ArrayDestroy implements worker.Textures.
func (c *Context) ArrayDestroy(a worker.Array) error { return c.MemFree(a.(*array).address) }

// row returns the address of a row of a copy in an array, or in device memory.
func row(a worker.Array, address uint64, level uint32, at [3]uint64, y, z uint64, copied *abi.ArrayCopy) uint64 {
	o, ok := a.(*array)
	if !ok {
		return address + (z*copied.Rows+y)*copied.Pitch
	}
	address = o.address
	for l := range level {
		e := o.desc.Extent(l)
		address += e[0] * e[1] * e[2]
	}
	e := o.desc.Extent(level)
	return address + ((at[2]+z)*e[1]+at[1]+y)*e[0] + at[0]
}

// ArrayCopy implements worker.Textures.
func (c *Context) ArrayCopy(s worker.Stream, a abi.ArrayCopy, dst, src worker.Array, done func(error)) error {
	for _, side := range []struct {
		a       worker.Array
		address uint64
	}{{dst, a.Dst}, {src, a.Src}} {
		if side.a == nil {
			if err := c.check(side.address, a.Span()); err != nil {
				return err
			}
		}
	}
	return c.enqueue(s, operation{done: done, work: func() error {
		for z := range a.Size[2] {
			for y := range a.Size[1] {
				to, err := c.at(row(dst, a.Dst, a.DstLevel, a.DstAt, y, z, &a), a.Size[0])
				if err != nil {
					return err
				}
				from, err := c.at(row(src, a.Src, a.SrcLevel, a.SrcAt, y, z, &a), a.Size[0])
				if err != nil {
					return err
				}
				copy(to, from)
			}
		}
		return nil
	}})
}

// TextureCreate implements worker.Textures. No kernel here uses one.
func (c *Context) TextureCreate(a abi.TextureCreate, of worker.Array) (uint64, error) {
	if of == nil {
		if err := c.check(a.Base, a.Span()); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastObject++
	c.objects[c.lastObject] = a.Surface == 1
	return c.lastObject, nil
}

// TextureDestroy implements worker.Textures.
func (c *Context) TextureDestroy(object uint64, surface bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, there := c.objects[object]; !there || is != surface {
		return abi.ErrInvalidHandle
	}
	delete(c.objects, object)
	return nil
}

// Textures returns the number of texture and surface objects.
func (d *Driver) Textures() (n int) {
	d.mu.Lock()
	contexts := slices.Collect(maps.Keys(d.contexts)) // their locks are taken first
	d.mu.Unlock()
	for _, c := range contexts {
		c.mu.Lock()
		n += len(c.objects)
		c.mu.Unlock()
	}
	return n
}

// reference is a reference of a module.
type reference struct{}

// FakeMultiprocessors is the number of multiprocessors that a fake driver
// reports.
const FakeMultiprocessors = 12

// ReferenceTexture and ReferenceSurface are the references that every module has.
const (
	ReferenceTexture = "picture"
	ReferenceSurface = "face"
)

var _ worker.References = (*Context)(nil)

// ReferenceFind implements worker.References.
func (c *Context) ReferenceFind(_ worker.Module, name string, surface bool) (worker.Reference, error) {
	if want := map[bool]string{false: ReferenceTexture, true: ReferenceSurface}[surface]; name != want {
		return nil, abi.ErrNotFound
	}
	return &reference{}, nil
}

// ReferenceBind implements worker.References. No kernel here reads one.
func (c *Context) ReferenceBind(_ worker.Reference, a abi.TextureCreate, of worker.Array) error {
	if of == nil {
		if err := c.check(a.Base, a.Span()); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastBound = a
	return nil
}

// Bound returns what was last bound to a reference in a context of the driver.
func (d *Driver) Bound() (last abi.TextureCreate) {
	d.mu.Lock()
	contexts := slices.Collect(maps.Keys(d.contexts))
	d.mu.Unlock()
	for _, c := range contexts {
		c.mu.Lock()
		if c.lastBound != (abi.TextureCreate{}) {
			last = c.lastBound
		}
		c.mu.Unlock()
	}
	return last
}
