package worker

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// maxContexts bounds the contexts of a guest process: each costs the driver
// threads or megabytes, and a program needs one.
const maxContexts = 64

func (s *Session) ctxCreate(c *command) error {
	a := abi.DecodeCtxCreate(c.argBytes)
	if err := s.handles.free(a.Ctx, 1); err != nil {
		return err
	}
	if len(s.contexts) >= maxContexts {
		return abi.ErrOutOfMemory
	}
	d, err := s.driver.NewContext(a.Flags, s.gate, s.window)
	if err != nil {
		return err
	}
	if err := s.gate.residency.add(d); err != nil {
		return errors.Join(err, d.Destroy())
	}
	ctx := &contextObject{handle: a.Ctx, driver: d, handles: map[uint64]struct{}{}, allocs: map[uint64]struct{}{}}
	s.handles.objects[a.Ctx] = ctx
	s.contexts[ctx] = struct{}{}
	return nil
}

func (s *Session) ctxDestroy(c *command) error {
	a := abi.DecodeCtxDestroy(c.argBytes)
	ctx, err := lookup[*contextObject](&s.handles, a.Ctx)
	if err != nil {
		return err
	}
	ctx.dead = true
	s.handles.removeContext(ctx)
	s.dropGraphs(ctx)
	// The driver's Destroy waits, the issuer does not: first the work ends.
	later := *c
	destroy := func() {
		if _, there := s.contexts[ctx]; !there {
			return
		}
		delete(s.contexts, ctx)
		s.gate.residency.remove(ctx.driver)
		err := ctx.driver.Destroy()
		s.giveBack(ctx)
		s.finish(&later, err)
	}
	if ctx.driver.Notify(func(error) { s.post(destroy) }) != nil {
		destroy() // poisoned: nothing runs
	}
	return errLater
}

func (s *Session) ctxSynchronize(c *command) error {
	ctx, err := s.context(c, abi.DecodeCtxSynchronize(c.argBytes).Ctx)
	if err != nil {
		return err
	}
	return s.start(c, &ticket{}, ctx.driver.Notify)
}

// context finds the command's context and says whether it may go on.
func (s *Session) context(c *command, handle uint64) (*contextObject, error) {
	ctx, err := lookup[*contextObject](&s.handles, handle)
	if err != nil {
		return nil, err
	}
	return ctx, c.use(ctx)
}
