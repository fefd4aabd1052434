package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// Array is an array of a driver, with all its levels.
type Array interface{}

// Textures is a Context that has arrays, textures and surfaces (CUDA driver API,
// "Texture Object Management", "Surface Object Management"). The worker has checked
// the arguments by themselves and against the arrays; a driver checks its own limits,
// and device memory.
type Textures interface {
	// ArrayCreate creates a zeroed array.
	ArrayCreate(a abi.ArrayCreate) (Array, error)
	// ArrayDestroy does not wait: the array is destroyed when the work enqueued so
	// far is done.
	ArrayDestroy(a Array) error
	// ArrayCopy copies a box; dst or src is nil where that side is device memory.
	ArrayCopy(s Stream, a abi.ArrayCopy, dst, src Array, done func(error)) error
	// TextureCreate creates an object and returns the number that kernels are passed.
	// of is nil for a texture of device memory. Its memory may be freed before it is
	// destroyed: then kernels must not read memory outside the context.
	TextureCreate(a abi.TextureCreate, of Array) (uint64, error)
	// TextureDestroy destroys an object; surfaces may be numbered separately from
	// textures.
	TextureDestroy(object uint64, surface bool) error
}

type (
	arrayObject struct {
		ctx   *contextObject
		array Array
		desc  abi.ArrayCreate
	}
	textureObject struct {
		ctx     *contextObject
		object  uint64
		surface bool
	}
)

func (a *arrayObject) owner() *contextObject   { return a.ctx }
func (t *textureObject) owner() *contextObject { return t.ctx }

// textures returns the context's driver, if it supports arrays.
func (x *contextObject) textures() (Textures, error) {
	if t, ok := x.driver.(Textures); ok {
		return t, nil
	}
	return nil, abi.ErrNotSupported
}
