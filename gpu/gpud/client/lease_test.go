package client

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// TestUnusedLeaseGoesBack checks that a lease is released, once, when it is no
// longer used: also after many uses in a row, and when others begin to wait while
// it is in use.
func TestUnusedLeaseGoesBack(t *testing.T) {
	f := startFake(t)
	h := dial(t, f)
	use := func(times int) {
		for range times {
			if _, err := h.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.Yield()
		}
	}
	goesBack := func(when string) {
		eventually(t, "the lease goes back "+when, func() bool {
			asked := len(f.received(wire.OpAcquire))
			return asked > 0 && len(f.received(wire.OpYield)) == asked
		})
	}
	use(1000)
	goesBack("after many uses")
	if n := len(f.received(wire.OpAcquire)); n > 500 { // fewer than uses, however busy the machine is
		t.Errorf("1000 uses in a row acquired %d leases, want at most 500", n)
	}
	use(1)
	goesBack("after another")
	if _, err := h.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.broadcast(wire.FromNode{Op: wire.OpYieldRequest})
	eventually(t, "others wait", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.lease.hurried
	})
	h.Yield()
	h.mu.Lock()
	left := time.Until(h.lease.due)
	h.mu.Unlock()
	if left > lingerHurried {
		t.Errorf("an unused lease is released in %v while others wait, want at most %v", left, lingerHurried)
	}
	goesBack("while others wait")
}
