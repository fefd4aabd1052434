package worker

import (
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// These limit what the driver holds. A guest library that submits marks keeps
// each of its streams below 1,024 by itself (docs/decisions/0035), so it never
// reaches them: beyond either limit, the ring fills up for all of the guest's
// streams, and the guest waits.
const (
	maxStreamCommands = 4096
	maxHeld           = 128 << 20 // bytes of the worker's memory for commands of all streams
	// commandMemory is roughly what a command costs besides its inline bytes, in
	// bytes of the worker and the driver.
	commandMemory = 1 << 10
	// maxLoose is the number of consecutive commands that the driver does not
	// report as done; after them the worker submits one that it does report.
	maxLoose = 256
)

// flow counts the commands of one stream that the driver holds.
type flow struct {
	commands atomic.Int64
	loose    int64 // the latest ones, which no ticket accounts for; owned by the issuer
}

// enter counts t before it is passed to the driver.
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

// leave removes t from the counts and wakes the issuer if it waits for that.
func (s *Session) leave(t *ticket) {
	wake := false
	if f := t.flow; f != nil {
		left := f.commands.Add(-t.commands)
		wake = left <= maxStreamCommands/2 && left+t.commands > maxStreamCommands/2
	}
	if s.releaseHeld(t.memory) || wake {
		s.signal()
	}
}

// releaseHeld removes bytes of a command that was counted as in flight from the held
// memory. It returns true if the issuer may be waiting for that.
func (s *Session) releaseHeld(bytes int64) (wake bool) {
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

// follow counts a command of o's stream that the driver has accepted and will not
// report as done: it is done when a later one is.
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
	// An error is the context's: its commands are done, and start reverts what
	// enter has counted.
	_ = s.start(&mark, &ticket{}, func(done func(error)) error { return o.ctx.driver.StreamNotify(o.stream, done) })
	return nil
}
