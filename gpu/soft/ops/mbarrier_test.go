package ops

import "testing"

// The counts of an mbarrier, phase by phase.
func TestMBarrier(t *testing.T) {
	must := func(b MBarrier, err error) MBarrier {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := must(NewMBarrier(3))
	if b.EndedParity(0) || !b.EndedParity(1) {
		t.Error("a new mbarrier is in phase 0, before which phase 1 has ended")
	}
	first := b
	b = must(b.Arrive(1, true))
	b = must(b.Arrive(2, false))
	if !b.Ended(first) || !b.EndedParity(0) || b.Pending() != 2 {
		t.Errorf("after all arrivals: %d pending, ended %v; want 2, as one was dropped", b.Pending(), b.Ended(first))
	}
	second := b
	b = must(b.Expect(100))
	b = must(b.Arrive(2, false))
	b = must(b.Complete(60))
	if b.Ended(second) {
		t.Error("a phase ended with 40 transactions pending")
	}
	if b = must(b.Complete(40)); !b.Ended(second) || b.Pending() != 2 {
		t.Errorf("the phase did not end with the last transaction: %#x", uint64(b))
	}
	b = must(b.Complete(16)) // before it is expected
	b = must(b.Arrive(1, false))
	b = must(b.Expect(16))
	if third := b; !must(b.Arrive(1, false)).Ended(third) {
		t.Errorf("the phase did not end: %#x", uint64(b))
	}
}

// What has no meaning is an error, and no count runs into another.
func TestMBarrierLimits(t *testing.T) {
	for _, n := range []uint32{0, 1 << 20} {
		if _, err := NewMBarrier(n); err == nil {
			t.Errorf("an mbarrier of %d arrivals", n)
		}
	}
	b, _ := NewMBarrier(mbarrierCounts)
	if _, err := b.Arrive(1<<20, false); err == nil {
		t.Error("more arrivals than are pending")
	}
	for _, n := range []int64{1 << 20, -1 << 20} {
		if _, err := b.Expect(n); err == nil {
			t.Errorf("%d transactions", n)
		}
	}
	c, err := b.Expect(-mbarrierCounts)
	if err != nil || c.tx() != -mbarrierCounts || c.Pending() != mbarrierCounts || c.expected() != mbarrierCounts || c.phase() != 0 {
		t.Errorf("%#x, %v", uint64(c), err)
	}
	if _, err := MBarrier(0).Arrive(1, false); err == nil {
		t.Error("an arrival at memory that is no mbarrier")
	}
}
