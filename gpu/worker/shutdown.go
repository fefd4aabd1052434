package worker

import (
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// fail tells the guest that no further command completes, and wakes all waiters.
// cause is nil when the guest closed the connection.
func (s *Session) fail(cause error) {
	if s.shared == nil {
		return
	}
	r, text := abi.ErrUnavailable, "the session has ended"
	if cause != nil {
		r, text = deathResult(cause), cause.Error()
	}
	s.guard(func() {
		var b [abi.ErrorTextSize]byte
		copy(b[:len(b)-1], text)
		copy(s.shared.Bytes(abi.OffErrorText, abi.ErrorTextSize), b[:])
		s.shared.Store32(abi.OffError, uint32(r))
		s.shared.Store32(abi.OffState, abi.StateDead)
		s.shared.Wake(abi.OffState)
		for i := range s.layout.slotCount {
			s.shared.Wake(s.layout.slots + i*abi.SlotSize + abi.SlotState)
		}
	})
	s.wakeByMessage()
}

// releaseTime is how long the device's running work may take to stop. The process
// exits afterwards, which frees the rest.
const releaseTime = 500 * time.Millisecond

// releaseAll destroys the contexts, gives the VRAM back and unmaps the regions.
func (s *Session) releaseAll() {
	s.releasing = true
	var contexts []*contextObject
	for ctx := range s.contexts {
		if !ctx.leaving { // otherwise a request is destroying it
			contexts = append(contexts, ctx)
		}
	}
	clear(s.contexts)
	releasing := make(chan struct{})
	go func() {
		defer close(releasing)
		for _, ctx := range contexts {
			if err := ctx.driver.Destroy(); err != nil {
				s.log.Warn("destroy context failed", "error", err)
			}
		}
	}()
	stopped := false
	select {
	case <-releasing:
		stopped = true
	case <-time.After(releaseTime):
		s.log.Warn("work on the device did not stop")
	}
	for _, ctx := range contexts {
		if !ctx.dead { // otherwise its destruction has begun, and they are known
			ctx.shares, ctx.events, ctx.imports = s.sharesOf(ctx), s.eventsOf(ctx), s.importsOf(ctx)
		}
		ctx.dead = true
		s.dropSharing(ctx)
		s.releaseContext(ctx)
	}
	s.awaitRequests()
	if stopped && s.requests == 0 && s.window != nil {
		s.window.Close()
	}
	s.account.Detach() // no idle bytes are kept
	s.host.Settle()
	_ = s.conn.Close()
	s.reader.Close()
	s.mu.Lock()
	s.closed = true
	s.doorbell.close()
	s.mu.Unlock()
	if s.inflight.Load() != 0 || s.requests > 0 {
		return // something may still use the shared memory
	}
	for _, r := range s.regions {
		r.release()
	}
	if s.shared != nil {
		s.shared.Close()
	}
}

// awaitRequests handles the answers of requests in progress, so that memory
// reserved by them is given back and contexts created by them are destroyed.
func (s *Session) awaitRequests() {
	for deadline := time.Now().Add(releaseTime); s.requests > 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.guard(func() { _ = s.runPosted() })
	}
}
