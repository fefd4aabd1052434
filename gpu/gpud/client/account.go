package client

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The session's account follows the stream: what gpud grants is entered by the
// stream's reader, and what is given back is taken out under the lock under which it
// is told, so that account, held and gpud's ledger see the same order.

// Account implements worker.Host.
func (h *Host) Account(a *worker.Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.account = a
}

// accounted is the account for a question to gpud, or nil. What is to be given back
// is told before the question.
func (h *Host) accounted() *worker.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	return h.account
}

// enter does what gpud's answer to a question means for the ledger.
func (h *Host) enter(q question, m wire.FromNode) {
	sharing := q.opens != "" || q.shares.Token != ""
	if q.bytes == 0 && !q.memory && !sharing {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if sharing {
		h.enterShared(q, m)
		return
	}
	if q.memory {
		if h.account != nil {
			h.account.Alone(m.Sole)
		}
		return
	}
	h.held += q.bytes + m.Spare
	if h.swap.out {
		h.swap.bytes += q.bytes + m.Spare
	}
	if h.account != nil {
		h.account.Granted(q.bytes, m.Spare, m.Sole)
	}
}

// Reclaimable implements worker.Host.
func (h *Host) Reclaimable(reclaim func(done func())) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reclaim = reclaim
}

// recall gives back all that nothing uses; the answer is the release. What the guest
// keeps is idle first.
func (h *Host) recall(s *stream, id uint64) {
	h.mu.Lock()
	reclaim := h.reclaim
	h.mu.Unlock()
	if reclaim == nil {
		h.recalled(s, id)
		return
	}
	reclaim(func() { go h.recalled(s, id) }) // the issuer does not wait for the socket
}

// recalled answers a recall. A gpud that has gone meanwhile gets no answer: what is
// idle is not in the next registration, or goes after it.
func (h *Host) recalled(s *stream, id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream != s {
		return
	}
	n := uint64(0)
	if h.account != nil {
		n = h.take(h.account.Recall())
	}
	s.tell(wire.ToNode{Op: wire.OpRecalled, ID: id, Bytes: n})
}

// Settle implements worker.Host. Frees that come meanwhile go with it.
func (h *Host) Settle() {
	if h.settles.CompareAndSwap(false, true) {
		go func() {
			h.settles.Store(false)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.settle()
		}()
	}
}

// settle is called with mu held.
func (h *Host) settle() {
	if h.account != nil {
		h.give(h.account.Surplus())
	}
}

// give tells gpud what was given back; without gpud the next registration does.
// It is called with mu held.
func (h *Host) give(bytes uint64) {
	if n := h.take(bytes); n > 0 && h.stream != nil {
		h.stream.tell(wire.ToNode{Op: wire.OpRelease, Bytes: n})
	}
}

// take takes bytes out of what the session holds. It is called with mu held.
func (h *Host) take(bytes uint64) uint64 {
	n := min(bytes, h.held)
	h.held -= n
	h.swap.bytes -= min(n, h.swap.bytes)
	return n
}
