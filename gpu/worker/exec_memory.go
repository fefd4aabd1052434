package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

func (s *Session) memAlloc(c *command) error {
	a := abi.DecodeMemAlloc(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if a.Size == 0 {
		return abi.ErrInvalidValue
	}
	if a.Size > s.host.Limits().VRAM {
		return abi.ErrOutOfMemory // also keeps the rounding from wrapping
	}
	if err := s.handles.room(1); err != nil {
		return err
	}
	return s.ask(c, func() error { return s.host.Reserve(Accounted(a.Size)) }, func(c *command, err error) error {
		if err != nil {
			return err
		}
		if err := s.allocate(c, ctx, a.Size); err != nil {
			s.host.Release(Accounted(a.Size))
			return err
		}
		return nil
	})
}

// allocate takes memory that has been reserved.
func (s *Session) allocate(c *command, ctx *contextObject, size uint64) error {
	if ctx.dead {
		return abi.ErrInvalidContext
	}
	if err := s.handles.room(1); err != nil {
		return err
	}
	address, err := ctx.driver.MemAlloc(size)
	if err != nil {
		return err
	}
	if _, twice := s.handles.allocs[address]; twice {
		s.log.Error("the driver gave an address twice", "address", address)
		return abi.ErrUnknown
	}
	s.handles.allocs[address] = allocation{ctx, size}
	ctx.allocs[address] = struct{}{}
	ctx.held += Accounted(size)
	c.value0 = address
	return nil
}

// memFree gives the memory back to the vGPU when the device has done the work
// that may use it, and completes then.
func (s *Session) memFree(c *command) error {
	address := abi.DecodeMemFree(c.argBytes).Address
	a, ok := s.handles.allocs[address]
	if !ok {
		return abi.ErrInvalidValue
	}
	ctx := a.ctx
	if err := c.use(ctx); err != nil {
		return err
	}
	if err := ctx.driver.MemFree(address); err != nil {
		return err
	}
	delete(s.handles.allocs, address)
	delete(ctx.allocs, address)
	later := *c
	freed := func(err error) {
		s.release(ctx, Accounted(a.size))
		s.finish(&later, err)
	}
	notified := ctx.driver.Notify(func(err error) { s.post(func() { freed(err) }) })
	if notified != nil {
		freed(notified)
	}
	return errLater
}

func (s *Session) memInfo(c *command) error {
	var free, total uint64
	return s.ask(c, func() (err error) {
		free, total, err = s.host.Memory()
		return err
	}, func(c *command, err error) error {
		c.value0, c.value1 = free, total
		return err
	})
}

// release gives a part of what a context holds back to the vGPU. What a
// destroyed context held has been given back already.
func (s *Session) release(ctx *contextObject, bytes uint64) {
	if n := min(bytes, ctx.held); n > 0 {
		ctx.held -= n
		s.host.Release(n)
	}
}

// giveBack gives back all that a context holds.
func (s *Session) giveBack(ctx *contextObject) { s.release(ctx, ctx.held) }
