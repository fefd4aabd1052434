package device

import (
	"errors"
	"fmt"
	"maps"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
	"github.com/basalt-gpu/basalt/gpu/soft/texture"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// maxTextures is the maximum number of objects of a context, whose table is copied when
// an object is created.
const maxTextures = 1 << 14

// array is memory of the context that contains an image.
type array struct {
	c     *Context
	addr  uint64
	image *texture.Image
}

// format returns the format of a CUarray_format with a number of channels.
func format(f, channels uint32) texture.Format {
	t := texture.Format{Bits: uint8(8 * abi.ChannelBytes(f)), Channels: uint8(channels)}
	switch {
	case f >= 0x10:
		t.Kind = texture.Float
	case f >= 0x08:
		t.Kind = texture.Signed
	}
	return t
}

// ArrayCreate implements worker.Textures.
func (c *Context) ArrayCreate(a abi.ArrayCreate) (worker.Array, error) {
	image, err := texture.NewImage(format(a.Format, a.Channels), texture.Size{
		Width: a.Width, Height: a.Height, Depth: a.Depth, Levels: a.Levels,
		Layered: a.Flags&abi.ArrayLayered != 0, Cube: a.Flags&abi.ArrayCubemap != 0,
	})
	if err != nil {
		return nil, errors.Join(abi.ErrInvalidValue, err)
	}
	addr, err := c.MemAlloc(image.Bytes)
	if err != nil {
		return nil, err
	}
	return &array{c: c, addr: addr, image: image}, nil
}

// ArrayDestroy implements worker.Textures.
func (c *Context) ArrayDestroy(a worker.Array) error {
	o, ok := a.(*array)
	if !ok || o.c != c {
		return abi.ErrInvalidHandle
	}
	return c.MemFree(o.addr)
}

// box is one side of a copy: the address of its first byte, and the distances in bytes
// of rows and of slices.
type box struct{ addr, pitch, slice uint64 }

// side returns a side of a copy in an array, or in device memory, whose span is
// checked.
func (c *Context) side(a worker.Array, addr uint64, level uint32, at [3]uint64, copy *abi.ArrayCopy) (box, error) {
	if a == nil {
		if _, err := c.memory(addr, copy.Span()); err != nil {
			return box{}, abi.ErrInvalidValue
		}
		return box{addr, copy.Pitch, copy.Pitch * copy.Rows}, nil
	}
	o, ok := a.(*array)
	if !ok || o.c != c {
		return box{}, abi.ErrInvalidHandle
	}
	l := &o.image.Levels[level]
	return box{o.addr + l.Offset + at[2]*l.Slice + at[1]*l.Pitch + at[0], l.Pitch, l.Slice}, nil
}

// ArrayCopy implements worker.Textures.
func (c *Context) ArrayCopy(s worker.Stream, a abi.ArrayCopy, dst, src worker.Array, done func(error)) error {
	to, err := c.side(dst, a.Dst, a.DstLevel, a.DstAt, &a)
	if err != nil {
		return err
	}
	from, err := c.side(src, a.Src, a.SrcLevel, a.SrcAt, &a)
	if err != nil {
		return err
	}
	return c.copying(s, a.Size[0]*a.Size[1]*a.Size[2], done, func() error {
		for z := range a.Size[2] {
			for y := range a.Size[1] {
				d, err := c.memory(to.addr+z*to.slice+y*to.pitch, a.Size[0])
				if err != nil {
					return err
				}
				b, err := c.memory(from.addr+z*from.slice+y*from.pitch, a.Size[0])
				if err != nil {
					return err
				}
				copy(d, b)
			}
		}
		return nil
	})
}

// TextureCreate implements worker.Textures.
func (c *Context) TextureCreate(a abi.TextureCreate, of worker.Array) (uint64, error) {
	t, err := c.describe(&a, of)
	if err != nil {
		return 0, err
	}
	if err := sample(&t.Texture, &a); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, abi.ErrInvalidContext
	}
	old := *c.textures.Load()
	if len(old) >= maxTextures {
		return 0, abi.ErrOutOfMemory
	}
	object, table := c.d.objects.Add(1), maps.Clone(old)
	table[object] = t
	c.textures.Store(&table)
	return object, nil
}

// TextureDestroy implements worker.Textures.
func (c *Context) TextureDestroy(object uint64, surface bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := *c.textures.Load()
	if t := old[object]; t == nil || t.Surface != surface {
		return abi.ErrInvalidHandle
	}
	table := maps.Clone(old)
	delete(table, object)
	c.textures.Store(&table)
	return nil
}

// texture returns an object for a kernel, or nil.
func (c *Context) texture(object uint64) *exec.Texture { return (*c.textures.Load())[object] }

// describe returns an object with its image.
func (c *Context) describe(a *abi.TextureCreate, of worker.Array) (*exec.Texture, error) {
	t := &exec.Texture{Surface: a.Surface == 1, Base: a.Base}
	var err error
	switch {
	case a.OnArray():
		o, ok := of.(*array)
		if !ok || o.c != c {
			return nil, abi.ErrInvalidHandle
		}
		t.Base = o.addr
		t.Image, err = view(a, o.image)
	case a.Resource == abi.ResourceLinear:
		t.Image, err = texture.NewLinear(format(a.Format, a.Channels), a.Width)
	default:
		t.Image, err = texture.NewPitched(format(a.Format, a.Channels), a.Width, a.Height, a.Pitch)
	}
	if err != nil {
		return nil, errors.Join(abi.ErrInvalidValue, err)
	}
	if a.OnArray() {
		return t, nil
	}
	if a.Base%textureAlignment != 0 {
		return nil, abi.ErrInvalidValue
	}
	needed := t.Bytes
	if t.Linear { // may be larger than its memory (driver API, cuTexObjectCreate): only fetches fail
		needed = t.Format.Bytes()
	}
	if _, err := c.memory(a.Base, needed); err != nil {
		return nil, abi.ErrInvalidValue
	}
	return t, nil
}

// view returns the part of an array that an object uses: one level, all levels, or
// those of its resource view.
func view(a *abi.TextureCreate, im *texture.Image) (*texture.Image, error) {
	f, firstLevel, lastLevel, firstLayer, lastLayer := im.Format, uint32(0), uint32(len(im.Levels)-1), uint32(0), im.Layers-1
	switch {
	case a.Resource == abi.ResourceArray:
		firstLevel, lastLevel = a.Level, a.Level
	case a.View != 0:
		var ok bool
		if f, ok = viewFormat(a.View); !ok {
			return nil, abi.ErrNotSupported
		}
		firstLevel, lastLevel, firstLayer, lastLayer = a.FirstLevel, a.LastLevel, a.FirstLayer, a.LastLayer
	}
	v, err := im.View(f, firstLevel, lastLevel, firstLayer, lastLayer)
	if err != nil {
		return nil, fmt.Errorf("view of an array: %w", err)
	}
	return v, nil
}

// viewFormat returns the format of a CUresourceViewFormat. Compressed formats are not
// supported.
func viewFormat(v uint32) (texture.Format, bool) {
	if v == 0 || v > 0x18 {
		return texture.Format{}, false
	}
	kinds := [8]texture.Format{
		{Kind: texture.Unsigned, Bits: 8}, {Kind: texture.Signed, Bits: 8}, {Kind: texture.Unsigned, Bits: 16}, {Kind: texture.Signed, Bits: 16},
		{Kind: texture.Unsigned, Bits: 32}, {Kind: texture.Signed, Bits: 32}, {Kind: texture.Float, Bits: 16}, {Kind: texture.Float, Bits: 32},
	}
	f := kinds[(v-1)/3]
	f.Channels = 1 << ((v - 1) % 3)
	return f, true
}

// sample sets how a texture is sampled (driver API, cuTexObjectCreate).
func sample(t *texture.Texture, a *abi.TextureCreate) error {
	t.Filtered, t.MipLinear = a.Filter == 1, a.MipFilter == 1
	t.Normalized = a.Flags&abi.TextureNormalized != 0
	t.Integers = a.Flags&abi.TextureReadAsInteger != 0
	t.SRGB = a.Flags&abi.TextureSRGB != 0
	t.Border, t.Bias, t.MinLevel, t.MaxLevel = a.Border, a.Bias, a.MinLevel, a.MaxLevel
	for i, mode := range a.Address {
		t.Address[i] = texture.Address(mode)
	}
	switch integers := t.Format.Kind != texture.Float && (t.Integers || t.Format.Bits == 32); {
	case a.Surface == 1:
		return nil
	case a.Flags&abi.TextureSeamlessCubemap != 0 && t.Cube:
		return abi.ErrNotSupported
	case (t.Filtered || t.MipLinear && len(t.Levels) > 1) && integers, // integers cannot be interpolated
		a.Resource == abi.ResourceMipmapped && !t.Normalized:
		return abi.ErrInvalidValue
	}
	return nil
}
