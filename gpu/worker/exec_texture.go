package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// minArray is the smallest size that an array is counted as, in bytes: a card may
// allocate no less than a page for one, and a session may have many handles.
const minArray = 64 << 10

// arrayBytes returns the bytes that an array is counted as.
func arrayBytes(a *abi.ArrayCreate) uint64 { return Accounted(max(minArray, a.Bytes())) }

// texturesOf returns a context that supports textures, for a new object with that
// handle whose description is valid according to check.
func (s *Session) texturesOf(c *command, context, handle uint64, check func() error) (*contextObject, Textures, error) {
	ctx, err := s.context(c, context)
	if err != nil {
		return nil, nil, err
	}
	t, err := ctx.textures()
	if err == nil {
		err = check()
	}
	if err == nil {
		err = s.handles.free(handle, 1)
	}
	return ctx, t, err
}

func (s *Session) arrayCreate(c *command) error {
	a := abi.DecodeArrayCreate(c.argBytes)
	ctx, t, err := s.texturesOf(c, a.Ctx, a.Array, a.Check)
	if err != nil {
		return err
	}
	bytes := arrayBytes(&a)
	return s.charge(c, bytes, func(c *command) error {
		err := s.makeArray(c, ctx, t, a)
		if !errors.Is(err, errLater) {
			s.unreserve(bytes)
		}
		return err
	})
}

// makeArray creates an array whose memory was charged, possibly some time ago: the driver
// clears it, in another goroutine.
func (s *Session) makeArray(c *command, ctx *contextObject, t Textures, a abi.ArrayCreate) error {
	if ctx.dead {
		return abi.ErrInvalidContext
	}
	var array Array
	return s.inContext(c, ctx, func() (err error) {
		array, err = t.ArrayCreate(a)
		return err
	}, func(_ *command, err error) error {
		if err == nil {
			err = s.enterArray(ctx, t, a, array)
		}
		if err != nil {
			s.unreserve(arrayBytes(&a))
		}
		return err
	})
}

// enterArray stores an array that the driver has created, or destroys it. The end of the
// context destroys all of its arrays.
func (s *Session) enterArray(ctx *contextObject, t Textures, a abi.ArrayCreate, array Array) error {
	if ctx.dead {
		return abi.ErrInvalidContext
	}
	if err := s.handles.free(a.Array, 1); err != nil {
		return errors.Join(err, t.ArrayDestroy(array))
	}
	s.handles.add(a.Array, ctx, &arrayObject{ctx, array, a})
	ctx.held += arrayBytes(&a)
	return nil
}

// arrayDestroy frees the memory when the device has done the work that may use it.
func (s *Session) arrayDestroy(c *command) error {
	handle := abi.DecodeArrayDestroy(c.argBytes).Array
	o, err := lookup[*arrayObject](&s.handles, handle)
	if err != nil {
		return err
	}
	ctx := o.ctx
	if err := c.use(ctx); err != nil {
		return err
	}
	if err := ctx.driver.(Textures).ArrayDestroy(o.array); err != nil {
		return err
	}
	s.handles.remove(handle, ctx)
	s.frees++
	return s.afterwards(c, ctx.driver.Notify, func() { s.freed(allocation{ctx: ctx, size: arrayBytes(&o.desc)}) })
}

// arraySide returns the array of one side of a copy, or nil for device memory.
func (s *Session) arraySide(ctx *contextObject, is bool, handle uint64, level uint32, at, size [3]uint64) (Array, error) {
	if !is {
		if at != [3]uint64{} || level != 0 {
			return nil, abi.ErrInvalidValue
		}
		return nil, nil
	}
	o, err := another[*arrayObject](s, ctx, handle)
	if err != nil {
		return nil, err
	}
	if !o.desc.Holds(level, at, size) {
		return nil, abi.ErrInvalidValue
	}
	return o.array, nil
}

func (s *Session) arrayCopy(c *command) error {
	a := abi.DecodeArrayCopy(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	t, err := o.ctx.textures()
	if err != nil {
		return err
	}
	if err := a.Check(); err != nil {
		return err
	}
	dst, err := s.arraySide(o.ctx, a.Arrays&abi.ArrayCopyDst != 0, a.Dst, a.DstLevel, a.DstAt, a.Size)
	if err != nil {
		return err
	}
	src, err := s.arraySide(o.ctx, a.Arrays&abi.ArrayCopySrc != 0, a.Src, a.SrcLevel, a.SrcAt, a.Size)
	if err != nil || a.Empty() {
		return err
	}
	return s.start(c, &ticket{}, func(done func(error)) error { return t.ArrayCopy(o.stream, a, dst, src, done) })
}

func (s *Session) textureCreate(c *command) error {
	a := abi.DecodeTextureCreate(c.argBytes)
	ctx, t, err := s.texturesOf(c, a.Ctx, a.Texture, a.Check)
	if err != nil {
		return err
	}
	of, err := s.textured(ctx, &a)
	if err != nil {
		return err
	}
	object, err := t.TextureCreate(a, of)
	if err != nil {
		return err
	}
	c.value0 = object
	s.handles.add(a.Texture, ctx, &textureObject{ctx, object, a.Surface == 1})
	return nil
}

// textured returns the array of a texture, or nil for device memory.
func (s *Session) textured(ctx *contextObject, a *abi.TextureCreate) (Array, error) {
	if !a.OnArray() {
		return nil, nil
	}
	o, err := another[*arrayObject](s, ctx, a.Base)
	if err != nil {
		return nil, err
	}
	if a.Level >= o.desc.Levels || a.Resource == abi.ResourceMipmapped && a.Level != 0 ||
		a.Surface == 1 && o.desc.Flags&abi.ArraySurface == 0 {
		return nil, abi.ErrInvalidValue
	}
	return o.array, nil
}

// textureDestroy removes the handle at once; the object is destroyed when the
// device has done the work that may use it.
func (s *Session) textureDestroy(c *command) error {
	handle := abi.DecodeTextureDestroy(c.argBytes).Texture
	o, err := lookup[*textureObject](&s.handles, handle)
	if err != nil {
		return err
	}
	c.ctx = o.ctx
	s.handles.remove(handle, o.ctx)
	return s.afterwards(c, o.ctx.driver.Notify, func() {
		if o.ctx.dead { // destroyed with its context
			return
		}
		if err := o.ctx.driver.(Textures).TextureDestroy(o.object, o.surface); err != nil {
			s.log.Debug("destroy texture failed", "object", o.object, "error", err)
		}
	})
}
