package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// Array is an array of a driver, with all its levels.
type Array interface{}

// Textures is a Context that has arrays, textures and surfaces (CUDA driver API,
// "Texture Object Management", "Surface Object Management"). What it is given has been
// checked by itself and against the arrays; a driver checks its own limits, and
// device memory.
type Textures interface {
	// ArrayCreate makes a zeroed array.
	ArrayCreate(a abi.ArrayCreate) (Array, error)
	// ArrayDestroy waits for nothing: the array goes when the work enqueued so far
	// is done.
	ArrayDestroy(a Array) error
	// ArrayCopy copies a box; dst or src is nil where that side is device memory.
	ArrayCopy(s Stream, a abi.ArrayCopy, dst, src Array, done func(error)) error
	// TextureCreate makes an object, of which it returns the number that kernels
	// are given. It is called with nil for a texture of device memory. Its memory may
	// go before it does: then kernels must not read what is no memory of the context.
	TextureCreate(a abi.TextureCreate, of Array) (uint64, error)
	// TextureDestroy destroys one; surfaces may be numbered apart from textures.
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

// textures is the context's driver, if it has arrays.
func (x *contextObject) textures() (Textures, error) {
	if t, ok := x.driver.(Textures); ok {
		return t, nil
	}
	return nil, abi.ErrNotSupported
}
