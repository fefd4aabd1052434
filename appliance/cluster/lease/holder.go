package lease

import "time"

// Holder is the node's side: the lease it has, on its own clock. It is a value
// that one goroutine owns.
type Holder struct {
	epoch   int64
	until   Instant // 0: no lease
	refused int64   // 0: not refused
}

// Ask is a heartbeat under way: what its answer is measured by.
type Ask struct {
	Sent  Instant
	Epoch int64
}

// NewHolder starts without a lease. epoch is the last one that the node has
// cleared up for (its status.observedEpoch).
func NewHolder(epoch int64) *Holder { return &Holder{epoch: epoch} }

// Sent notes the moment before a heartbeat goes out.
func (h *Holder) Sent(now Instant) Ask { return Ask{Sent: now, Epoch: h.epoch} }

// Answered takes the answer to an ask and reports whether anything changed. Late,
// doubled and reordered answers do no harm: a grant counts from its own ask,
// and one for another epoch counts for nothing.
func (h *Holder) Answered(q Ask, a Answer) bool {
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

// Adopt takes on an epoch, after everything of an older one has been destroyed.
// A lease of the old epoch is void.
func (h *Holder) Adopt(epoch int64) {
	if epoch > h.epoch {
		h.epoch, h.until = epoch, 0
	}
	if h.refused <= h.epoch {
		h.refused = 0
	}
}

// Epoch that the node asks for.
func (h *Holder) Epoch() int64 { return h.epoch }

// Until is the lease's end; 0 without one.
func (h *Holder) Until() Instant { return h.until }

// Refused is the epoch that the cluster has moved on to; 0: none.
func (h *Holder) Refused() int64 { return h.refused }

// Valid reports whether the lease holds for margin from now.
func (h *Holder) Valid(now Instant, margin time.Duration) bool {
	return h.until > 0 && now.Add(margin) < h.until
}
