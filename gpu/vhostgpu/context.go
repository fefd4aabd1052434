package vhostgpu

import (
	"bytes"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// death is the reason why a context no longer has a worker.
type death struct {
	Result abi.Result
	Text   string
}

// guestContext is one guest process.
type guestContext struct {
	id     uint32
	name   string  // chosen by the guest; for the log only
	worker *worker // nil before MsgHello and after the session's end
	dead   *death
	waits  []held // MsgWaits with a fence
	// wakePending means that a wake-up arrived that no wait has received. The
	// guest marks its slot before it submits MsgWait, so the wake-up may arrive
	// first.
	wakePending bool
	// region0 is the resource with the session's header, or 0.
	region0 uint32
}

// createContext handles CTX_CREATE: u32 length of the name, u32 context_init, 64
// bytes of name.
func (d *Device) createContext(r request) []byte {
	if len(r.body) < 72 {
		return r.respond(respErrInvalidParam)
	}
	if r.Context == 0 || d.contexts[r.Context] != nil {
		return r.respond(respErrInvalidContext)
	}
	if len(d.contexts) >= d.limits.Contexts {
		return r.respond(respErrOutOfMemory)
	}
	name, _, _ := bytes.Cut(r.body[8:72], []byte{0})
	d.contexts[r.Context] = &guestContext{id: r.Context, name: printable(name)}
	return r.respond(respOK)
}

func (d *Device) destroyContext(r request) []byte {
	c := d.contexts[r.Context]
	if c == nil {
		return r.respond(respErrInvalidContext)
	}
	d.endContext(c)
	delete(d.contexts, c.id)
	for _, res := range d.resources {
		if res.Contexts[c.id] {
			delete(res.Contexts, c.id)
			d.attachments--
		}
	}
	return r.respond(respOK)
}

// endContext signals the waits of a context and dismisses its worker.
func (d *Device) endContext(c *guestContext) {
	d.releaseWaits(c)
	if c.worker != nil {
		d.dismiss(c.worker)
		c.worker = nil
	}
}

// fail ends a context's session with an error that the guest's library returns
// from every later call.
func (d *Device) fail(c *guestContext, result abi.Result, format string, args ...any) {
	if c.dead != nil {
		return
	}
	c.dead = &death{result, fmt.Sprintf(format, args...)}
	d.log.Warn("session ended", "context", c.id, "process", c.name, "result", result, "reason", c.dead.Text)
	if c.worker != nil {
		d.dismiss(c.worker)
		c.worker = nil
	}
	d.writeDeath(c)
}

// writeDeath writes the reason of the session's end into region 0 and wakes all
// waiters.
func (d *Device) writeDeath(c *guestContext) {
	if res := d.resources[c.region0]; res != nil && len(res.Backing) > 0 {
		writeDead(d.memory, res.Backing[0].GPA, *c.dead)
	}
	d.releaseWaits(c)
}

// writeDead sets the worker-written words of the header page at gpa. It does not
// overwrite a reason that the worker has written itself.
func writeDead(m *virtio.Memory, gpa uint64, why death) {
	page, err := m.Bytes(gpa, abi.HeaderSize)
	if err != nil || virtio.Load32(page[abi.OffState:]) == abi.StateDead {
		return
	}
	text := page[abi.OffErrorText : abi.OffErrorText+abi.ErrorTextSize]
	n := copy(text[:len(text)-1], why.Text)
	clear(text[n:])
	virtio.Store32(page[abi.OffError:], uint32(why.Result))
	virtio.Store32(page[abi.OffState:], abi.StateDead)
}

// wait holds the answer to a MsgWait until the next wake-up, or answers at once
// if there is nothing to wait for. It returns nil when it holds the answer.
func (d *Device) wait(c *guestContext, h held) []byte {
	if c.worker == nil || c.dead != nil || c.wakePending || h.At.Queue != controlQueue {
		c.wakePending = false
		return h.Response
	}
	c.waits = append(c.waits, h)
	crowd, total := c, 0
	for _, o := range d.contexts {
		if total += len(o.waits); len(o.waits) > len(crowd.waits) {
			crowd = o
		}
	}
	switch {
	case len(c.waits) > d.limits.Waits:
		d.releaseOldest(c)
	case total > d.share():
		d.releaseOldest(crowd)
	}
	return nil
}

// releaseOldest answers the oldest wait to make room. An additional wake-up is
// harmless: the guest checks its slot again.
func (d *Device) releaseOldest(c *guestContext) {
	oldest := c.waits[0]
	c.waits = c.waits[1:]
	d.complete(oldest)
}

// share returns how many entries of the control queue held answers of one kind
// may occupy: the others are for commands that are answered at once, in
// particular doorbells.
func (d *Device) share() int {
	if q := d.queues[controlQueue].q; q != nil {
		return int(q.Size()) / 4
	}
	return 0
}

// wake answers all waits of the context. It serves the queue first, so that a
// wait which the guest has submitted already is among them, even if its kick has
// not arrived yet.
func (d *Device) wake(c *guestContext) {
	d.serve(controlQueue)
	c.wakePending = true
	d.releaseWaits(c)
}

func (d *Device) releaseWaits(c *guestContext) {
	waits := c.waits
	c.waits = nil
	for _, h := range waits {
		d.complete(h)
	}
}

// printable replaces characters of a guest's name that could affect a terminal or
// a log.
func printable(name []byte) string {
	return string(bytes.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f {
			return '?'
		}
		return r
	}, name))
}
