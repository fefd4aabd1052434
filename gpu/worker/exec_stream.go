package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// streamCreate keeps the handle of a stream that could not be created, as eventCreate
// does.
func (s *Session) streamCreate(c *command) error {
	a := abi.DecodeStreamCreate(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if ctx == nil {
		return err
	}
	if err := s.handles.free(a.Stream, 1); err != nil {
		return err
	}
	o := &streamObject{ctx: ctx, flow: &flow{}, failed: err}
	if err == nil {
		o.stream, o.failed = ctx.driver.StreamCreate(a.Flags, a.Priority)
	}
	s.handles.add(a.Stream, ctx, o)
	return o.failed
}

func (s *Session) streamDestroy(c *command) error {
	h := abi.DecodeStreamDestroy(c.argBytes).Stream
	o, err := lookup[*streamObject](&s.handles, h)
	if err != nil {
		return err
	}
	c.ctx = o.ctx
	s.handles.remove(h, o.ctx)
	if o.failed != nil {
		return nil
	}
	return o.ctx.driver.StreamDestroy(o.stream)
}

func (s *Session) streamSynchronize(c *command) error {
	o, err := s.stream(c, abi.DecodeStreamSynchronize(c.argBytes).Stream)
	if err != nil {
		return err
	}
	return s.start(c, &ticket{}, func(done func(error)) error { return o.ctx.driver.StreamNotify(o.stream, done) })
}

func (s *Session) streamQuery(c *command) error {
	o, err := s.stream(c, abi.DecodeStreamQuery(c.argBytes).Stream)
	if err != nil {
		return err
	}
	return o.ctx.driver.StreamQuery(o.stream)
}

func (s *Session) streamWaitEvent(c *command) error {
	a := abi.DecodeStreamWaitEvent(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	e, err := s.handles.event(a.Event)
	if err != nil {
		return err
	}
	if err := o.ctx.driver.StreamWaitEvent(o.stream, e.event); err != nil {
		return err
	}
	return s.follow(o)
}

func (s *Session) streamWaitValue(c *command) error {
	a := abi.DecodeStreamWaitValue(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	w, can := o.ctx.driver.(ValueWaiter)
	if !can {
		return abi.ErrNotSupported
	}
	return s.start(c, &ticket{}, func(done func(error)) error {
		return w.StreamWaitValue(o.stream, a.Address, a.Value, a.Width, a.Flags, done)
	})
}

// streamMark is streamSynchronize for the guest library's own accounting: errors
// of earlier commands are left for other commands to report.
func (s *Session) streamMark(c *command) error {
	o, err := s.handles.stream(abi.DecodeStreamMark(c.argBytes).Stream)
	if err != nil {
		return err
	}
	c.ctx, c.flow = o.ctx, o.flow
	return s.start(c, &ticket{}, func(done func(error)) error { return o.ctx.driver.StreamNotify(o.stream, done) })
}
