package client

import "github.com/basalt-gpu/basalt/gpu/gpud/wire"

// swapState is what the host knows of where the session's memory is.
type swapState struct {
	evict func(bytes uint64) (moved uint64, err error) // nil: it cannot leave the device
	asked bool                                         // this gpud may ask for it
	out   bool                                         // evicted, and not restored since
	bytes uint64                                       // that are in the host's memory
}

// Evictable implements worker.Host. A gpud that does not know of evictions is
// not told: it would not understand.
func (h *Host) Evictable(evict func(bytes uint64) (moved uint64, err error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.swap.evict = evict
	if h.stream != nil && h.swap.asked {
		h.stream.tell(wire.ToNode{Op: wire.OpEvictable})
	}
}

// evict does what gpud asks. The answer goes to whichever gpud is there then;
// to one that comes later the registration tells the same.
func (h *Host) evict(bytes uint64) {
	h.mu.Lock()
	evict := h.swap.evict
	h.mu.Unlock()
	m := wire.ToNode{Op: wire.OpEvicted, Failed: "this worker does not support eviction"}
	h.mu.Lock()
	if h.account != nil { // what nothing uses need not move
		h.give(h.account.Recall())
	}
	h.mu.Unlock()
	if evict != nil {
		var err error
		if m.Bytes, err = evict(bytes); err != nil {
			m.Failed = err.Error()
		} else {
			m.Failed = ""
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.swap.out = h.swap.out || evict != nil
	h.swap.bytes += min(m.Bytes, h.held-min(h.swap.bytes, h.held))
	if h.stream != nil {
		h.stream.tell(m)
	}
}

// Restored implements worker.Host.
func (h *Host) Restored(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := wire.ToNode{Op: wire.OpRestored}
	h.swap.out, h.swap.bytes = false, 0
	if err != nil {
		h.swap.out, h.swap.bytes = true, h.held
		m.Failed = err.Error()
	}
	if h.stream != nil {
		h.stream.tell(m)
	}
	if err != nil && h.lease.has { // the next one comes when there is more room
		h.releaseLease(h.stream)
	}
}

func (h *Host) isOut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.swap.out
}
