package lease

import "time"

// Holder is the node's side: its lease, on its own clock. It is not safe for
// concurrent use.
type Holder struct {
	epoch   int64
	until   Instant // 0 without a lease
	refused int64   // 0 if not refused
}

// SentHeartbeat is a heartbeat that was sent; its answer is evaluated relative to it.
type SentHeartbeat struct {
	Sent  Instant
	Epoch int64
}

// NewHolder returns a Holder without a lease. epoch is the last epoch for which the
// node has cleaned up (its status.observedEpoch).
func NewHolder(epoch int64) *Holder { return &Holder{epoch: epoch} }

// Sent records the moment before a heartbeat is sent.
func (h *Holder) Sent(now Instant) SentHeartbeat { return SentHeartbeat{Sent: now, Epoch: h.epoch} }

// Answered processes the answer to a heartbeat and reports whether anything changed.
// Late, duplicate and reordered answers are harmless: a grant counts from its own
// heartbeat, and a grant for another epoch is ignored.
func (h *Holder) Answered(q SentHeartbeat, a Answer) bool {
	if q.Epoch != h.epoch || h.refused > h.epoch {
		return false
	}
	switch {
	case a.Refused > h.epoch:
		h.refused, h.until = a.Refused, 0
		return true
	case a.Granted:
		if until := q.Sent.Add(min(max(a.TTL, 0), TTL)); until > h.until {
			h.until = until
			return true
		}
	}
	return false
}

// Adopt switches to an epoch, after everything of an older epoch has been
// destroyed. A lease of the old epoch becomes invalid.
func (h *Holder) Adopt(epoch int64) {
	if epoch > h.epoch {
		h.epoch, h.until = epoch, 0
	}
	if h.refused <= h.epoch {
		h.refused = 0
	}
}

// Epoch returns the epoch for which the node requests a lease.
func (h *Holder) Epoch() int64 { return h.epoch }

// Until returns the end of the lease, or 0 without a lease.
func (h *Holder) Until() Instant { return h.until }

// Refused returns the newer epoch of the cluster, or 0 if the node was not refused.
func (h *Holder) Refused() int64 { return h.refused }

// Valid reports whether the lease is valid for at least margin from now.
func (h *Holder) Valid(now Instant, margin time.Duration) bool {
	return h.until > 0 && now.Add(margin) < h.until
}
