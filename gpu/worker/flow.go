package worker

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// Limits of what the driver holds. A guest library that puts marks keeps each
// of its streams below 1,024 by itself (docs/decisions/0035), so it never meets
// them: beyond either, the ring fills for all of the guest's streams, and the
// guest waits.
const (
	maxStreamCommands = 4096
	maxHeld           = 128 << 20 // bytes of the worker's memory for commands of all streams
	// commandMemory is about what a command costs besides its inline bytes, in
	// worker and driver.
	commandMemory = 1 << 10
	// maxLoose is how many commands that the driver does not report as done may
	// follow each other before one is put behind them that it does.
	maxLoose = 256
)

// flow counts what the driver holds of one stream.
type flow struct {
	commands atomic.Int64
	loose    int64 // the latest ones, that no ticket accounts for; the issuer's
}

// enter counts t before the driver is given it.
func (s *Session) enter(c *command, t *ticket) {
	s.inflight.Add(1)
	commands := int64(1)
	if f := c.flow; f != nil {
		commands += f.loose
		f.loose = 0
		t.flow = f
		if f.commands.Add(1) >= maxStreamCommands {
			s.blocked = f
		}
	}
	t.commands = commands
	t.memory = commands*commandMemory + int64(len(c.inlineBytes))
	s.held.Add(t.memory)
}

// leave takes t out of the counts and wakes the issuer if it waits for that.
func (s *Session) leave(t *ticket) {
	wake := false
	if f := t.flow; f != nil {
		left := f.commands.Add(-t.commands)
		wake = left <= maxStreamCommands/2 && left+t.commands > maxStreamCommands/2
	}
	if s.letGo(t.memory) || wake {
		s.signal()
	}
}

// letGo takes bytes, of something that was counted as one in flight, out of what
// is held; true: the issuer may be waiting for that.
func (s *Session) letGo(bytes int64) (wake bool) {
	left := s.held.Add(-bytes)
	s.inflight.Add(-1)
	return left < maxHeld && left+bytes >= maxHeld
}

// full reports whether the ring must wait. Only the issuer calls it.
func (s *Session) full() bool {
	if s.blocked != nil && s.blocked.commands.Load() > maxStreamCommands/2 {
		return true
	}
	s.blocked = nil
	return s.held.Load() >= maxHeld
}

// follow counts a command of o's stream that the driver has taken and will not
// report as done: it is when a later one is.
func (s *Session) follow(o streamObject) error {
	f := o.flow
	f.loose++
	if f.commands.Add(1) >= maxStreamCommands {
		s.blocked = f
	}
	if f.loose < maxLoose {
		return nil
	}
	mark := command{entry: entry{slot: abi.NoSlot}, ctx: o.ctx, flow: f}
	// An error is the context's: its commands are done, and enter's count of
	// them is taken back.
	_ = s.start(&mark, &ticket{}, func(done func(error)) error { return o.ctx.driver.StreamNotify(o.stream, done) })
	return nil
}
