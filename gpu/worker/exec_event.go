package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// eventOf returns the command's event, or an error if the command must not be
// executed.
func (s *Session) eventOf(c *command, handle uint64) (*eventObject, error) {
	e, err := lookup[*eventObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	if err := c.use(e.ctx); err != nil {
		return nil, err
	}
	return e, e.failed
}

// event returns an event of a command whose stream was checked already.
func (h *handles) event(handle uint64) (*eventObject, error) {
	e, err := lookup[*eventObject](h, handle)
	if err != nil {
		return nil, err
	}
	return e, e.failed
}

// eventInterprocess is CU_EVENT_INTERPROCESS, which is implemented here (share_event.go).
const eventInterprocess = 4

// eventCreate keeps the handle of an event that could not be created, for
// instance because its context failed at this moment: later commands on it return
// the error.
func (s *Session) eventCreate(c *command) error {
	a := abi.DecodeEventCreate(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if ctx == nil {
		return err
	}
	if err := s.handles.free(a.Event, 1); err != nil {
		return err
	}
	o := &eventObject{ctx: ctx, failed: err}
	if err == nil {
		o.event, o.failed = ctx.driver.EventCreate(a.Flags &^ eventInterprocess)
	}
	s.handles.add(a.Event, ctx, o)
	return o.failed
}

func (s *Session) eventDestroy(c *command) error {
	h := abi.DecodeEventDestroy(c.argBytes).Event
	e, err := lookup[*eventObject](&s.handles, h)
	if err != nil {
		return err
	}
	c.ctx = e.ctx
	s.handles.remove(h, e.ctx)
	if e.shared != nil {
		s.dropEvent(e.shared)
	}
	if e.failed != nil {
		return nil
	}
	return e.ctx.driver.EventDestroy(e.event)
}

func (s *Session) eventRecord(c *command) error {
	a := abi.DecodeEventRecord(c.argBytes)
	o, err := s.stream(c, a.Stream)
	if err != nil {
		return err
	}
	e, err := s.handles.event(a.Event)
	if err != nil {
		return err
	}
	if e.ctx != o.ctx {
		return abi.ErrInvalidHandle
	}
	if err := o.ctx.driver.EventRecord(e.event, o.stream); err != nil {
		return err
	}
	s.eventRecorded(e)
	return s.follow(o)
}

func (s *Session) eventSynchronize(c *command) error {
	e, err := s.eventOf(c, abi.DecodeEventSynchronize(c.argBytes).Event)
	if err != nil {
		return err
	}
	if e.shared != nil {
		return s.eventAwait(c, e.shared)
	}
	return s.start(c, &ticket{}, func(done func(error)) error { return e.ctx.driver.EventNotify(e.event, done) })
}

func (s *Session) eventQuery(c *command) error {
	e, err := s.eventOf(c, abi.DecodeEventQuery(c.argBytes).Event)
	if err != nil {
		return err
	}
	if o := e.shared; o != nil {
		if !o.done(o.latest()) {
			return abi.ErrNotReady
		}
		return nil
	}
	return e.ctx.driver.EventQuery(e.event)
}
