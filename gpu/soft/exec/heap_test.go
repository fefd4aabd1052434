package exec

import "testing"

func TestHeap(t *testing.T) {
	const size = 8 << 20
	h := NewHeap(1<<40, size)
	var at []uint64
	for {
		p := h.alloc(100_000)
		if p == 0 {
			break
		}
		at = append(at, p)
	}
	if len(at) != size/100_000 {
		t.Errorf("%d allocations of 100000 bytes succeeded, want %d", len(at), size/100_000)
	}
	for i := 0; i < len(at); i += 2 { // while those between them are still in use
		if !h.release(at[i]) {
			t.Errorf("release(%#x) = false, want true", at[i])
		}
	}
	for _, p := range at {
		h.release(p)
	}
	if len(h.free) != 1 || h.free[0] != (hole{1 << 40, size}) || len(h.used) != 0 {
		t.Errorf("heap after all is freed: free %v, used %v; want one hole of %d bytes", h.free, h.used, size)
	}
	if h.release(at[0]) || h.release(1) || h.alloc(0) != 0 || h.alloc(1<<63) != 0 {
		t.Error("release of a freed or unknown address, or alloc of 0 or 1<<63 bytes, succeeded; want it to fail")
	}
}
