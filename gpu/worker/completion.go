package worker

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/abi/carrier"
)

// chunkSpan is a range of staging chunks; it is empty when count is 0.
type chunkSpan struct{ first, count uint64 }

// ticket is a command that was passed to the driver. Its done completes the
// command once, from any goroutine.
type ticket struct {
	s       *Session
	ctx     *contextObject
	slot    uint32
	release chunkSpan
	region  *region
	count   *atomic.Uint64 // bytes is added to it when the copy is done
	bytes   uint64
	fired   atomic.Bool

	flow     *flow // of its stream, or nil
	commands int64 // of the stream: this one, and those before it that have no ticket
	memory   int64 // bytes
}

// start passes an operation to the driver, which calls done when it is complete.
// It returns errLater, or the driver's error if the driver refused the operation.
func (s *Session) start(c *command, t *ticket, op func(done func(error)) error) error {
	t.s, t.ctx, t.slot, t.release = s, c.ctx, c.slot, c.release
	if t.region != nil {
		t.region.acquire()
	}
	s.enter(c, t)
	if err := op(t.done); err != nil {
		if t.fired.CompareAndSwap(false, true) {
			t.end()
			return err // the issuer completes the command and releases its chunks
		}
		return errLater // the driver called done as well as returning an error
	}
	return errLater
}

func (t *ticket) done(err error) {
	if !t.fired.CompareAndSwap(false, true) {
		return
	}
	r := resultOf(err)
	if err == nil && t.count != nil {
		t.count.Add(t.bytes)
	}
	if err != nil && t.ctx != nil {
		r = t.s.asyncError(t.ctx, err)
	}
	if t.slot != abi.NoSlot || t.release.count > 0 {
		t.s.guard(func() {
			t.s.releaseChunks(t.release)
			t.s.complete(t.slot, r, 0, 0)
		})
	}
	t.end()
}

func (t *ticket) end() {
	if t.region != nil {
		t.region.release()
	}
	t.s.leave(t)
}

// asyncError stores the first asynchronous error of a context, and publishes in
// the header the first one of the session and the number of contexts that have had
// one. Whoever reads either word finds the context's error stored.
func (s *Session) asyncError(ctx *contextObject, err error) abi.Result {
	r := resultOf(err)
	first, fresh := ctx.poison(r)
	if fresh {
		s.log.Debug("asynchronous error", "error", err)
		s.host.Faulted(r)
		s.guard(func() {
			s.increment(abi.OffAsyncCount)
			s.shared.CAS32(abi.OffAsyncError, 0, uint32(r))
		})
	}
	return first
}

// complete completes the command of a slot and wakes its waiter if it sleeps.
func (s *Session) complete(slot uint32, r abi.Result, value0, value1 uint64) {
	if slot == abi.NoSlot {
		return
	}
	at := s.layout.slots + uint64(slot)*abi.SlotSize
	s.shared.Store32(at+abi.SlotResult, uint32(r))
	s.shared.Store64(at+abi.SlotValue0, value0)
	s.shared.Store64(at+abi.SlotValue1, value1)
	if s.shared.Swap32(at+abi.SlotState, abi.SlotDone) == abi.SlotSleeping {
		s.shared.Wake(at + abi.SlotState)
		s.wakeByMessage()
	}
}

func (s *Session) wakeByMessage() {
	if s.byMessage {
		// A full socket contains a wake-up that the peer has not read yet.
		_, _ = carrier.TryWrite(s.raw, carrier.Message{Type: abi.MsgWake})
	}
}

func (s *Session) releaseChunks(c chunkSpan) {
	for i := range c.count {
		s.shared.Store32(s.layout.chunkState+4*(c.first+i), abi.ChunkFree)
	}
}

// guard runs f, which accesses shared memory. Pages that the other side has
// removed end the session, and not the process.
func (s *Session) guard(f func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			s.stop(fmt.Errorf("%w: access to shared memory failed: %v", abi.ErrUnknown, p))
		}
	}()
	f()
}
