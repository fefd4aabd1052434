package ops

import "testing"

// TestMBarrier checks the counts of an mbarrier, phase by phase.
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
		t.Errorf("new mbarrier: EndedParity(0) = %v, EndedParity(1) = %v, want false and true", b.EndedParity(0), b.EndedParity(1))
	}
	first := b
	b = must(b.Arrive(1, true))
	b = must(b.Arrive(2, false))
	if !b.Ended(first) || !b.EndedParity(0) || b.Pending() != 2 {
		t.Errorf("after all arrivals: %d pending, ended = %v; want 2, as one was dropped, and true", b.Pending(), b.Ended(first))
	}
	second := b
	b = must(b.Expect(100))
	b = must(b.Arrive(2, false))
	b = must(b.Complete(60))
	if b.Ended(second) {
		t.Errorf("phase with 40 pending transactions has ended, want it in progress: %#x", uint64(b))
	}
	if b = must(b.Complete(40)); !b.Ended(second) || b.Pending() != 2 {
		t.Errorf("mbarrier after the last transaction = %#x, want the phase ended and 2 arrivals pending", uint64(b))
	}
	b = must(b.Complete(16)) // before it is expected
	b = must(b.Arrive(1, false))
	b = must(b.Expect(16))
	if third := b; !must(b.Arrive(1, false)).Ended(third) {
		t.Errorf("mbarrier before the last arrival = %#x, want the phase to end with that", uint64(b))
	}
}

// TestMBarrierLimits checks that undefined operations are errors, and that no count
// overflows into another.
func TestMBarrierLimits(t *testing.T) {
	for _, n := range []uint32{0, 1 << 20} {
		if _, err := NewMBarrier(n); err == nil {
			t.Errorf("NewMBarrier(%d) = nil error, want one", n)
		}
	}
	b, _ := NewMBarrier(mbarrierCounts)
	if _, err := b.Arrive(1<<20, false); err == nil {
		t.Error("Arrive with more arrivals than are pending: no error, want one")
	}
	for _, n := range []int64{1 << 20, -1 << 20} {
		if _, err := b.Expect(n); err == nil {
			t.Errorf("Expect(%d): no error, want one", n)
		}
	}
	c, err := b.Expect(-mbarrierCounts)
	if err != nil || c.tx() != -mbarrierCounts || c.Pending() != mbarrierCounts || c.expected() != mbarrierCounts || c.phase() != 0 {
		t.Errorf("Expect(%d) = %#x, error %v; want only the transactions changed", -mbarrierCounts, uint64(c), err)
	}
	if _, err := MBarrier(0).Arrive(1, false); err == nil {
		t.Error("Arrive at memory that is not an mbarrier: no error, want one")
	}
}
