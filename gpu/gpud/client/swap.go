package client

import "github.com/basalt-gpu/basalt/gpu/gpud/wire"

// swapState is what the host knows about where the session's memory is.
type swapState struct {
	evict func(bytes uint64) (moved uint64, err error) // nil: it cannot be evicted
	asked bool                                         // this gpud may ask for evictions
	out   bool                                         // evicted, and not restored since
	bytes uint64                                       // bytes that are in host memory
}

// Evictable implements worker.Host. It is not reported to a gpud without
// evictions, which would not understand it.
func (h *Host) Evictable(evict func(bytes uint64) (moved uint64, err error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.swap.evict = evict
	if h.stream != nil && h.swap.asked {
		h.stream.send(wire.ToNode{Op: wire.OpEvictable})
	}
}

// evict handles gpud's request. The answer goes to the gpud that is connected
// then; a later one learns the same from the registration.
func (h *Host) evict(bytes uint64) {
	h.mu.Lock()
	evict := h.swap.evict
	h.mu.Unlock()
	m := wire.ToNode{Op: wire.OpEvicted, Failed: "this worker does not support eviction"}
	h.mu.Lock()
	if h.account != nil { // unused memory need not be copied
		h.giveBack(h.account.DrainIdle())
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
		h.stream.send(m)
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
		h.stream.send(m)
	}
	if err != nil && h.lease.has { // the next one is granted when there is more room
		h.releaseLease(h.stream)
	}
}

func (h *Host) isOut() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.swap.out
}
