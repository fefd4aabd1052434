package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// eventOf finds the command's event and says whether the command may go on.
func (s *Session) eventOf(c *command, handle uint64) (*eventObject, error) {
	e, err := lookup[*eventObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return e, c.use(e.ctx)
}

func (s *Session) eventCreate(c *command) error {
	a := abi.DecodeEventCreate(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if err := s.handles.free(a.Event, 1); err != nil {
		return err
	}
	e, err := ctx.driver.EventCreate(a.Flags)
	if err != nil {
		return err
	}
	s.handles.add(a.Event, ctx, &eventObject{ctx, e})
	return nil
}

func (s *Session) eventDestroy(c *command) error {
	h := abi.DecodeEventDestroy(c.argBytes).Event
	e, err := lookup[*eventObject](&s.handles, h)
	if err != nil {
		return err
	}
	c.ctx = e.ctx
	s.handles.remove(h, e.ctx)
	return e.ctx.driver.EventDestroy(e.event)
}

func (s *Session) eventRecord(c *command) error {
	a := abi.DecodeEventRecord(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	e, err := lookup[*eventObject](&s.handles, a.Event)
	if err != nil {
		return err
	}
	if e.ctx != o.ctx {
		return abi.ErrInvalidHandle
	}
	return o.ctx.driver.EventRecord(e.event, o.stream)
}

func (s *Session) eventSynchronize(c *command) error {
	e, err := s.eventOf(c, abi.DecodeEventSynchronize(c.argBytes).Event)
	if err != nil {
		return err
	}
	return s.start(c, &ticket{}, func(done func(error)) error { return e.ctx.driver.EventNotify(e.event, done) })
}

func (s *Session) eventQuery(c *command) error {
	e, err := s.eventOf(c, abi.DecodeEventQuery(c.argBytes).Event)
	if err != nil {
		return err
	}
	return e.ctx.driver.EventQuery(e.event)
}
