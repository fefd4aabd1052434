package cuda

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Arrays, textures and surfaces. Arrays stay on the card when memory is evicted,
// because only the card knows their layout. Structs are those of cuda.h, in C's
// layout.

// array is a CUarray, or a CUmipmappedArray with a CUarray for each level.
type array struct {
	handle uintptr
	levels []uintptr
	whole  bool // it has several levels
}

// arrayDescriptor is CUDA_ARRAY3D_DESCRIPTOR.
type arrayDescriptor struct {
	width, height, depth    uint64
	format, channels, flags uint32
}

// copySide is a half of CUDA_MEMCPY3D.
type copySide struct {
	x, y, z          uint64
	_                uint64 // a level: 0
	memory           uint32
	_                uintptr // host memory
	device           uint64
	array            uintptr
	_                uintptr // reserved
	pitch, rowsApart uint64
}

// copyBox is CUDA_MEMCPY3D.
type copyBox struct {
	src, dst copySide
	size     [3]uint64
}

// CUmemorytype, from cuda.h.
const (
	memoryDevice = 2
	memoryArray  = 3
)

// resource is CUDA_RESOURCE_DESC. The longest member of the union is pitch2D; the
// other members have their fields at the same offsets, except for the size of a row
// of texels.
type resource struct {
	kind             uint32
	base             uint64 // an array, or an address
	format, channels uint32
	width            uint64 // of texels in a row: bytes
	height, pitch    uint64
	_                [128 - 40]byte
	_                uint32 // flags: 0
}

// textureDescriptor is CUDA_TEXTURE_DESC.
type textureDescriptor struct {
	address                            [3]uint32
	filter, flags, anisotropy, mipmaps uint32
	bias, least, most                  float32
	border                             [4]float32
	_                                  [12]uint32
}

// viewDescriptor is CUDA_RESOURCE_VIEW_DESC.
type viewDescriptor struct {
	format                                       uint32
	width, height, depth                         uint64
	firstLevel, lastLevel, firstLayer, lastLayer uint32
	_                                            [16]uint32
}

var _ worker.Textures = (*context)(nil)

// ArrayCreate implements worker.Textures. The array is zero when it returns,
// because its memory may have been another guest's.
func (c *context) ArrayCreate(a abi.ArrayCreate) (worker.Array, error) {
	c.calls.RLock()
	defer c.calls.RUnlock()
	d, h := newOut[arrayDescriptor](), newOut[uintptr]()
	defer d.free()
	defer h.free()
	*d.value = arrayDescriptor{a.Width, a.Height, a.Depth, a.Format, a.Channels, a.Flags}
	o := &array{whole: a.Levels > 1}
	var err error
	if o.whole {
		err = c.passOn(cuMipmappedArrayCreate, h.at(), d.at(), uintptr(a.Levels))
	} else {
		err = c.passOn(cuArray3DCreate, h.at(), d.at())
	}
	if err != nil {
		return nil, err
	}
	o.handle = *h.value
	if err := c.findLevels(o, &a); err != nil {
		return nil, errors.Join(err, c.freeArray(o))
	}
	if err := c.clearArray(o, &a); err != nil {
		return nil, errors.Join(err, c.freeArray(o))
	}
	return o, nil
}

func (c *context) findLevels(o *array, a *abi.ArrayCreate) error {
	if !o.whole {
		o.levels = []uintptr{o.handle}
		return nil
	}
	h := newOut[uintptr]()
	defer h.free()
	for level := range a.Levels {
		if err := c.passOn(cuMipmappedArrayGetLevel, h.at(), o.handle, uintptr(level)); err != nil {
			return err
		}
		o.levels = append(o.levels, *h.value)
	}
	return nil
}

// zeroes is the number of zero bytes that an array is filled from. No row is
// longer.
const zeroes = 4 << 20

// clearArray fills an array with zeroes and waits for that. The zeroes are freed when
// no work runs, because cuMemFree waits for kernels.
func (c *context) clearArray(o *array, a *abi.ArrayCreate) error {
	from := newOut[uint64]()
	defer from.free()
	if err := c.call(cuMemAlloc, from.at(), zeroes); err != nil {
		return err
	}
	err := c.clear(*from.value, zeroes, c.zero)
	for level := range a.Levels {
		if err == nil {
			err = c.clearLevel(o.levels[level], a.Extent(level), *from.value)
		}
	}
	err = errors.Join(err, c.call(cuStreamSynchronize, c.zero))
	at := *from.value
	free := func() { _ = c.call(cuMemFree, uintptr(at)) }
	if c.whenDrained(free) != nil {
		free() // the context has failed: no work runs
	}
	return err
}

func (c *context) clearLevel(level uintptr, size [3]uint64, from uint64) error {
	if size[0] > zeroes {
		return fmt.Errorf("%w: invalid row size of %d bytes", abi.ErrInvalidValue, size[0])
	}
	rows := min(size[1], zeroes/size[0])
	slices := uint64(1)
	if rows == size[1] {
		slices = min(size[2], zeroes/(size[0]*rows))
	}
	box := newOut[copyBox]()
	defer box.free()
	for z := uint64(0); z < size[2]; z += slices {
		for y := uint64(0); y < size[1]; y += rows {
			n := [3]uint64{size[0], min(rows, size[1]-y), min(slices, size[2]-z)}
			*box.value = copyBox{
				src:  copySide{memory: memoryDevice, device: from, pitch: size[0], rowsApart: n[1]},
				dst:  copySide{memory: memoryArray, array: level, y: y, z: z},
				size: n,
			}
			if err := c.passOn(cuMemcpy3DAsync, box.at(), c.zero); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *context) freeArray(o *array) error {
	if o.whole {
		return c.call(cuMipmappedArrayDestroy, o.handle)
	}
	return c.call(cuArrayDestroy, o.handle)
}

// ArrayDestroy implements worker.Textures.
func (c *context) ArrayDestroy(a worker.Array) error {
	o, ok := a.(*array)
	if !ok {
		return abi.ErrInvalidHandle
	}
	return c.whenDrained(func() { _ = c.freeArray(o) })
}

// side returns one side of a copy; for device memory it checks the bytes that the
// copy spans.
func (c *context) side(a worker.Array, address uint64, level uint32, at [3]uint64, copied *abi.ArrayCopy) (copySide, error) {
	if a == nil {
		return copySide{memory: memoryDevice, device: address, pitch: copied.Pitch, rowsApart: copied.Rows}, c.check(address, copied.Span())
	}
	o, ok := a.(*array)
	if !ok || int(level) >= len(o.levels) {
		return copySide{}, abi.ErrInvalidHandle
	}
	return copySide{memory: memoryArray, array: o.levels[level], x: at[0], y: at[1], z: at[2]}, nil
}

// ArrayCopy implements worker.Textures.
func (c *context) ArrayCopy(s worker.Stream, a abi.ArrayCopy, dst, src worker.Array, done func(error)) error {
	to, err := c.side(dst, a.Dst, a.DstLevel, a.DstAt, &a)
	if err != nil {
		return err
	}
	from, err := c.side(src, a.Src, a.SrcLevel, a.SrcAt, &a)
	if err != nil {
		return err
	}
	return c.push(s, &op{done: done, submit: func(cu uintptr) error {
		box := newOut[copyBox]()
		defer box.free()
		*box.value = copyBox{src: from, dst: to, size: a.Size}
		return c.passOn(cuMemcpy3DAsync, box.at(), cu)
	}})
}

// resourceOf describes what a texture or surface reads.
func (c *context) resourceOf(a *abi.TextureCreate, of worker.Array) (resource, error) {
	r := resource{kind: a.Resource}
	if !a.OnArray() {
		r.base, r.format, r.channels, r.width = a.Base, a.Format, a.Channels, a.Span()
		if a.Resource == abi.ResourcePitch2D {
			r.width, r.height, r.pitch = a.Width, a.Height, a.Pitch
		}
		return r, c.check(a.Base, a.Span())
	}
	o, ok := of.(*array)
	switch {
	case !ok || int(a.Level) >= len(o.levels):
		return r, abi.ErrInvalidHandle
	case a.Resource == abi.ResourceArray:
		r.base = uint64(o.levels[a.Level])
	case !o.whole: // a single level of an array that was created with levels
		r.kind, r.base = abi.ResourceArray, uint64(o.handle)
	default:
		r.base = uint64(o.handle)
	}
	return r, nil
}

// TextureCreate implements worker.Textures.
func (c *context) TextureCreate(a abi.TextureCreate, of worker.Array) (uint64, error) {
	r, err := c.resourceOf(&a, of)
	if err != nil {
		return 0, err
	}
	res, object := newOut[resource](), newOut[uint64]()
	defer res.free()
	defer object.free()
	*res.value = r
	if a.Surface == 1 {
		if err := c.passOn(cuSurfObjectCreate, object.at(), res.at()); err != nil {
			return 0, err
		}
		return *object.value, nil
	}
	tex, view := newOut[textureDescriptor](), newOut[viewDescriptor]()
	defer tex.free()
	defer view.free()
	*tex.value = textureDescriptor{
		address: a.Address, filter: a.Filter, flags: a.Flags, anisotropy: a.Anisotropy, mipmaps: a.MipFilter,
		bias: a.Bias, least: a.MinLevel, most: a.MaxLevel, border: a.Border,
	}
	seen := uintptr(0)
	if a.View != 0 {
		*view.value = viewDescriptor{
			format: a.View, width: a.ViewWidth, height: a.ViewHeight, depth: a.ViewDepth,
			firstLevel: a.FirstLevel, lastLevel: a.LastLevel, firstLayer: a.FirstLayer, lastLayer: a.LastLayer,
		}
		seen = view.at()
	}
	err = c.passOn(cuTexObjectCreate, object.at(), res.at(), tex.at(), seen)
	return *object.value, err
}

// TextureDestroy implements worker.Textures.
func (c *context) TextureDestroy(object uint64, surface bool) error {
	if surface {
		return c.passOn(cuSurfObjectDestroy, uintptr(object))
	}
	return c.passOn(cuTexObjectDestroy, uintptr(object))
}
