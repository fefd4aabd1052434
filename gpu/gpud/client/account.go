package client

import (
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// The session's account follows the order of the stream: memory that gpud grants is
// added by the stream's reader, and memory that is given back is subtracted under
// the lock under which gpud is told. So the account, held and gpud's ledger see the
// same order.

// Account implements worker.Host.
func (h *Host) Account(a *worker.Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.account = a
}

// accounted returns the account for a query to gpud, or nil. Memory that is to be
// given back is reported before the query.
func (h *Host) accounted() *worker.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settle()
	return h.account
}

// enter applies gpud's answer to a question to the account.
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
			h.account.SetSole(m.Sole)
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

// recall gives back all unused memory; the answer to the recall is the release.
// Memory that the guest keeps is freed first.
func (h *Host) recall(s *stream, id uint64) {
	h.mu.Lock()
	reclaim := h.reclaim
	h.mu.Unlock()
	if reclaim == nil {
		h.recalled(s, id)
		return
	}
	reclaim(func() { go h.recalled(s, id) }) // the issuer must not wait for the socket
}

// recalled answers a recall. If the connection to that gpud has ended, it sends no
// answer: unused memory is not part of the next registration, or is given back
// after it.
func (h *Host) recalled(s *stream, id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream != s {
		return
	}
	n := uint64(0)
	if h.account != nil {
		n = h.subtract(h.account.DrainIdle())
	}
	s.send(wire.ToNode{Op: wire.OpRecalled, ID: id, Bytes: n})
}

// Settle implements worker.Host. Frees that are made in the meantime are
// included.
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

// settle is called with h.mu held.
func (h *Host) settle() {
	if h.account != nil {
		h.giveBack(h.account.DrainSurplus())
	}
}

// giveBack tells gpud what was given back; without a connection, the next
// registration does so. It is called with h.mu held.
func (h *Host) giveBack(bytes uint64) {
	if n := h.subtract(bytes); n > 0 && h.stream != nil {
		h.stream.send(wire.ToNode{Op: wire.OpRelease, Bytes: n})
	}
}

// subtract subtracts bytes from what the session holds and returns how many it
// subtracted. It is called with h.mu held.
func (h *Host) subtract(bytes uint64) uint64 {
	n := min(bytes, h.held)
	h.held -= n
	h.swap.bytes -= min(n, h.swap.bytes)
	return n
}
