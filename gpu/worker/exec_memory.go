package worker

import (
	"errors"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func (s *Session) memAlloc(c *command) error {
	a := abi.DecodeMemAlloc(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	if a.Size == 0 {
		return abi.ErrInvalidValue
	}
	if err := s.handles.room(1); err != nil {
		return err
	}
	return s.charge(c, Accounted(a.Size), func(c *command) error {
		return s.obtain(c, &obtaining{
			ctx: ctx, size: a.Size, ask: ctx.driver.MemAlloc, drop: ctx.driver.MemFree,
			enter: func(c *command, address uint64) error { return s.enterAllocation(c, ctx, address, a.Size) },
		})
	})
}

// charge takes bytes of the session's memory for the object that take creates. take is
// called on the issuer; when it fails, at once or later, it gives the bytes back.
func (s *Session) charge(c *command, bytes uint64, take func(c *command) error) error {
	if bytes > Accounted(s.host.Limits().VRAM) || bytes == 0 { // it is 0 if the rounding overflowed
		return abi.ErrOutOfMemory
	}
	if s.account.Take(bytes) {
		return take(c)
	}
	return s.reserve(c, bytes, func(c *command, err error) error {
		if err != nil {
			return err
		}
		return take(c)
	})
}

// starved is a command for which there was not enough memory while frees were in
// progress.
type starved struct {
	c      command
	bytes  uint64
	answer func(c *command, err error) error
}

// reserve gets bytes that the account does not have from the host and calls answer
// on the issuer. While frees are in progress, a command for which there is not
// enough memory waits for them: a program may free, in a stream or without work in
// its context, and allocate again without waiting.
func (s *Session) reserve(c *command, bytes uint64, answer func(c *command, err error) error) error {
	before := s.returned
	return s.ask(c, func() error { return s.host.Reserve(bytes) }, func(c *command, err error) error {
		if errors.Is(err, abi.ErrOutOfMemory) {
			s.reclaim()
		}
		switch {
		case !errors.Is(err, abi.ErrOutOfMemory):
		case s.account.Take(bytes): // freed in the meantime
			err = nil
		case s.returned != before: // freed in the meantime, and given back already
			return s.reserve(c, bytes, answer)
		case s.frees > 0:
			s.starved = append(s.starved, starved{*c, bytes, answer})
			return errLater
		}
		return answer(c, err)
	})
}

// retryStarved retries the commands that wait for memory.
func (s *Session) retryStarved() {
	waiting := s.starved
	s.starved = nil
	for _, w := range waiting {
		if err := s.reserve(&w.c, w.bytes, w.answer); !errors.Is(err, errLater) {
			s.finish(&w.c, err) // too many requests
		}
	}
}

// unreserve gives back memory that no allocation uses.
func (s *Session) unreserve(bytes uint64) {
	s.returned++
	if s.account.Put(bytes) {
		s.host.Settle()
	}
}

// inContext runs request, a call of a driver in a context that may take long, as ask does.
// The context is not destroyed before answer has returned.
func (s *Session) inContext(c *command, ctx *contextObject, request func() error, answer func(c *command, err error) error) error {
	ctx.calls++
	asked := s.ask(c, request, func(c *command, err error) error {
		defer ctx.callOver()
		return answer(c, err)
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		ctx.callOver()
	}
	return asked
}

// obtaining is memory that a driver is asked for, and that has been charged.
type obtaining struct {
	ctx   *contextObject
	size  uint64
	ask   func(size uint64) (memory uint64, err error) // called in another goroutine
	drop  func(memory uint64) error
	enter func(c *command, memory uint64) error // stores it in the tables, on the issuer
	again bool
}

// obtain has the driver allocate memory, which takes as long as clearing it, in another
// goroutine. If that fails and the guest has kept freed memory, it tries once more after
// freeing that. When it fails, the memory is given back.
func (s *Session) obtain(c *command, o *obtaining) error {
	if o.ctx.dead {
		s.unreserve(Accounted(o.size))
		return abi.ErrInvalidContext
	}
	var memory uint64
	asked := s.inContext(c, o.ctx, func() (err error) {
		memory, err = o.ask(o.size)
		return err
	}, func(c *command, err error) error {
		if errors.Is(err, abi.ErrOutOfMemory) && !o.again && !o.ctx.dead && s.reclaim() {
			o.again = true
			return s.obtain(c, o)
		}
		if err == nil {
			err = s.obtained(c, o, memory)
		}
		if err != nil {
			s.unreserve(Accounted(o.size))
		}
		return err
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		s.unreserve(Accounted(o.size))
	}
	return asked
}

// obtained stores memory that a driver has allocated, or frees it. The end of the context
// frees all of its memory.
func (s *Session) obtained(c *command, o *obtaining, memory uint64) error {
	if o.ctx.dead {
		return abi.ErrInvalidContext
	}
	if err := o.enter(c, memory); err != nil {
		return errors.Join(err, o.drop(memory))
	}
	o.ctx.held += Accounted(o.size)
	s.sendKeepLimit()
	return nil
}

func (s *Session) enterAllocation(c *command, ctx *contextObject, address, size uint64) error {
	if err := s.handles.room(1); err != nil {
		return err
	}
	if _, twice := s.handles.allocs[address]; twice {
		s.log.Error("driver returned an address that is already allocated", "address", address)
		return abi.ErrUnknown
	}
	s.handles.allocs[address] = allocation{ctx: ctx, size: size}
	ctx.allocs[address] = struct{}{}
	c.value0 = address
	return nil
}

// allocation returns the allocation that begins at an address, for a command that
// frees it.
func (s *Session) allocation(c *command, address uint64) (allocation, error) {
	a, ok := s.handles.allocs[address]
	if !ok {
		return a, abi.ErrInvalidValue
	}
	return a, c.use(a.ctx)
}

// memFree gives the memory back to the vGPU when the device has done the work
// that may use it, and completes then: at once if there is no such work.
func (s *Session) memFree(c *command) error {
	address := abi.DecodeMemFree(c.argBytes).Address
	a, err := s.allocation(c, address)
	if err != nil {
		return err
	}
	return s.free(c, address, a)
}

func (s *Session) free(c *command, address uint64, a allocation) error {
	ctx := a.ctx
	if a.shared != nil && !a.shared.ready {
		return abi.ErrUnavailable // another thread is sharing it
	}
	if err := ctx.driver.MemFree(address); err != nil {
		return err
	}
	s.handles.forget(address, ctx)
	return s.freeAfterwards(c, a)
}

// freeAfterwards gives bytes that a driver frees back to the vGPU and completes the
// command when the context's work is done.
func (s *Session) freeAfterwards(c *command, a allocation) error {
	unanswered := c.slot == abi.NoSlot
	s.frees++
	if unanswered {
		s.settling++
	}
	return s.afterwards(c, a.ctx.driver.Notify, func() {
		s.freed(a)
		if unanswered {
			s.settled()
		}
	})
}

// settled is called at the end of a free without a slot. After the last one it
// answers the queries of the free memory that came after it.
func (s *Session) settled() {
	if s.settling--; s.settling > 0 {
		return
	}
	questions := s.questions
	s.questions = nil
	for _, c := range questions {
		if err := s.memInfo(&c); !errors.Is(err, errLater) {
			s.finish(&c, err)
		}
	}
}

// afterwards calls notify and completes the command, after calling f, when notify's
// done is called; that may be within the call. Until then the command counts as held
// by the driver.
func (s *Session) afterwards(c *command, notify func(done func(error)) error, f func()) error {
	const called, left = 1, 2
	var state atomic.Int32
	var result error
	later := *c
	later.argBytes, later.inlineBytes = nil, nil
	s.inflight.Add(1)
	s.held.Add(commandMemory)
	refused := notify(func(err error) {
		result = err
		if !state.CompareAndSwap(0, called) {
			s.post(func() {
				s.releaseHeld(commandMemory)
				f()
				s.finish(&later, err)
			})
		}
	})
	if refused != nil {
		result = refused
	} else if state.CompareAndSwap(0, left) {
		return errLater
	}
	s.releaseHeld(commandMemory)
	f()
	return result
}

// memFreeAsync gives the memory back when its stream has reached the free. The
// command itself completes at once.
func (s *Session) memFreeAsync(c *command) error {
	args := abi.DecodeMemFreeAsync(c.argBytes)
	o, err := s.stream(c, args.Stream)
	if err != nil {
		return err
	}
	a, err := s.allocation(c, args.Address)
	if err != nil {
		return err
	}
	if a.ctx != o.ctx {
		return abi.ErrInvalidContext
	}
	if a.shared != nil && !a.shared.ready {
		return abi.ErrUnavailable // another thread is sharing it
	}
	ctx := a.ctx
	unwatched := *c
	unwatched.slot = abi.NoSlot
	s.frees++
	started := s.start(&unwatched, &ticket{}, func(done func(error)) error {
		return ctx.driver.MemFreeAsync(o.stream, args.Address, func(err error) {
			// Posted before it counts as done: whoever has seen the stream's end sees the
			// memory as free.
			s.post(func() { s.freed(a) })
			done(err)
		})
	})
	if !errors.Is(started, errLater) {
		s.frees--
		return started
	}
	s.handles.forget(args.Address, ctx)
	return nil
}

// freed is called at the end of a free.
func (s *Session) freed(a allocation) {
	s.frees--
	switch {
	case a.shared != nil:
		s.unshare(a.shared)
	case a.from != nil:
		s.unuse(*a.from)
	default:
		s.release(a.ctx, Accounted(a.size))
	}
	s.retryStarved()
}

// memInfo needs gpud only if another session of the vGPU has memory. Memory that
// the guest has freed without waiting, or keeps, counts as free.
func (s *Session) memInfo(c *command) error {
	if err := s.runPosted(); err != nil { // handle frees that are done
		return err
	}
	if s.settling > 0 {
		if len(s.questions) >= maxRequests {
			return abi.ErrUnavailable
		}
		s.questions = append(s.questions, *c) // it has neither arguments nor inline bytes
		return errLater
	}
	total := s.host.Limits().VRAM
	if free, ok := s.account.Free(total); ok {
		c.value0, c.value1 = free+s.kept(), total
		return nil
	}
	var free uint64
	return s.ask(c, func() (err error) {
		free, total, err = s.host.Memory()
		return err
	}, func(c *command, err error) error {
		c.value0, c.value1 = min(free+s.kept(), total), total
		return err
	})
}

// release gives a part of the memory that a context holds back to the vGPU. The
// memory of a destroyed context has been given back already.
func (s *Session) release(ctx *contextObject, bytes uint64) {
	if n := min(bytes, ctx.held); n > 0 {
		ctx.held -= n
		s.unreserve(n)
	}
}

// releaseContext releases the memory that a context holds.
func (s *Session) releaseContext(ctx *contextObject) { s.release(ctx, ctx.held) }
