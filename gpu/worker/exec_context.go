package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxContexts bounds the contexts of a guest process: each costs the driver
// threads or megabytes, and a program needs one.
const maxContexts = 64

// ctxCreate has the driver create the context in another goroutine: a card takes
// tenths of a second for it.
func (s *Session) ctxCreate(c *command) error {
	a := abi.DecodeCtxCreate(c.argBytes)
	if a.Device != 0 {
		return abi.ErrInvalidDevice
	}
	if err := s.handles.free(a.Ctx, 1); err != nil {
		return err
	}
	if len(s.contexts)+s.opening >= maxContexts {
		return abi.ErrOutOfMemory
	}
	var d Context
	s.opening++
	asked := s.ask(c, func() (err error) {
		d, err = s.driver.NewContext(a.Flags, s.gate, s.window)
		return err
	}, func(c *command, err error) error {
		s.opening--
		if err != nil {
			return err
		}
		return s.enterContext(a.Ctx, d)
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		s.opening--
	}
	return asked
}

func (s *Session) enterContext(handle uint64, d Context) error {
	err := s.handles.free(handle, 1)
	if err == nil && s.releasing {
		err = abi.ErrUnavailable
	}
	if err == nil {
		err = s.adopt(d)
	}
	if err == nil {
		err = s.gate.residency.add(d)
	}
	if err != nil {
		return errors.Join(err, d.Destroy())
	}
	ctx := &contextObject{handle: handle, driver: d, handles: map[uint64]struct{}{}, allocs: map[uint64]struct{}{}}
	ctx.output.limit = abi.DefaultPrintfFIFO
	s.collectOutput(ctx)
	s.handles.objects[handle] = ctx
	s.contexts[ctx] = struct{}{}
	return nil
}

// ctxDestroy ends the context after its work, and all loads and allocations in it, have
// ended, because the driver's Destroy stops running work.
func (s *Session) ctxDestroy(c *command) error {
	a := abi.DecodeCtxDestroy(c.argBytes)
	ctx, err := lookup[*contextObject](&s.handles, a.Ctx)
	if err != nil {
		return err
	}
	ctx.dead = true
	ctx.shares, ctx.events, ctx.imports = s.sharesOf(ctx), s.eventsOf(ctx), s.importsOf(ctx)
	s.handles.removeContext(ctx)
	s.dropGraphs(ctx)
	later := *c
	idle := func() {
		ctx.destroy = func() { s.destroy(&later, ctx) }
		if ctx.calls == 0 {
			ctx.destroy()
		}
	}
	if ctx.driver.Notify(func(error) { s.post(idle) }) != nil {
		idle() // poisoned: no work runs
	}
	return errLater
}

// destroy has the driver destroy the context in another goroutine.
func (s *Session) destroy(c *command, ctx *contextObject) {
	if _, there := s.contexts[ctx]; !there {
		return // the session ends, and releaseAll destroys it
	}
	s.gate.residency.remove(ctx.driver)
	ctx.leaving = true
	over := func(_ *command, err error) error {
		delete(s.contexts, ctx)
		s.dropMappings(ctx)
		s.dropSharing(ctx)
		s.releaseContext(ctx)
		return err
	}
	if asked := s.ask(c, ctx.driver.Destroy, over); asked != errLater { //nolint:errorlint // ask returns it bare
		s.finish(c, over(c, ctx.driver.Destroy()))
	}
}

func (s *Session) ctxSynchronize(c *command) error {
	ctx, err := s.context(c, abi.DecodeCtxSynchronize(c.argBytes).Ctx)
	if err != nil {
		return err
	}
	return s.start(c, &ticket{}, ctx.driver.Notify)
}

// context returns the command's context, or an error if the command must not be
// executed.
func (s *Session) context(c *command, handle uint64) (*contextObject, error) {
	ctx, err := lookup[*contextObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return ctx, c.use(ctx)
}
