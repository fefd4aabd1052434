package worker

import (
	"bytes"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// stream returns the command's stream, or an error if the command must not be
// executed.
func (s *Session) stream(c *command, handle uint64) (streamObject, error) {
	o, err := s.handles.stream(handle)
	if err != nil {
		return o, err
	}
	c.flow = o.flow
	return o, c.use(o.ctx)
}

func (s *Session) copyHtoD(c *command) error {
	a := abi.DecodeCopyHtoD(c.argBytes)
	if err := s.chunksOf(c, a.SrcRegion, a.SrcOff, a.SrcLen); err != nil {
		return err
	}
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	src, r, err := s.buffer(a.SrcRegion, a.SrcOff, a.SrcLen)
	if err != nil {
		return err
	}
	t := &ticket{region: r, count: &s.meter.toDevice, bytes: a.SrcLen}
	return s.start(c, t, func(done func(error)) error { return o.ctx.driver.CopyHtoD(o.stream, a.Dst, src, done) })
}

func (s *Session) copyHtoDInline(c *command) error {
	a := abi.DecodeCopyHtoDInline(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	src := bytes.Clone(c.inlineBytes)
	t := &ticket{count: &s.meter.toDevice, bytes: uint64(len(src))}
	return s.start(c, t, func(done func(error)) error { return o.ctx.driver.CopyHtoD(o.stream, a.Dst, src, done) })
}

func (s *Session) copyDtoH(c *command) error {
	a := abi.DecodeCopyDtoH(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	dst, r, err := s.buffer(a.DstRegion, a.DstOff, a.DstLen)
	if err != nil {
		return err
	}
	if a.DstRegion == 0 && !s.inArena(a.DstOff, a.DstLen) {
		return abi.ErrInvalidValue // must not overwrite the header, ring or slots
	}
	t := &ticket{region: r, count: &s.meter.fromDevice, bytes: a.DstLen}
	return s.start(c, t, func(done func(error)) error { return o.ctx.driver.CopyDtoH(o.stream, dst, a.Src, done) })
}

func (s *Session) inArena(off, n uint64) bool {
	_, _, ok := s.layout.chunks(off, n)
	return ok || n == 0
}

func (s *Session) copyDtoD(c *command) error {
	a := abi.DecodeCopyDtoD(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	return s.start(c, &ticket{}, func(done func(error)) error {
		return o.ctx.driver.CopyDtoD(o.stream, a.Dst, a.Src, a.Size, done)
	})
}

func (s *Session) memset(c *command) error {
	a := abi.DecodeMemset(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	if a.Width != 1 && a.Width != 2 && a.Width != 4 || a.Count > (1<<64-1)/uint64(a.Width) {
		return abi.ErrInvalidValue
	}
	return s.start(c, &ticket{}, func(done func(error)) error {
		return o.ctx.driver.Memset(o.stream, a.Dst, a.Value, a.Width, a.Count, done)
	})
}
