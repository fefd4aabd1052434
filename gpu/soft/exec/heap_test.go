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
		t.Errorf("%d allocations of 100000 bytes", len(at))
	}
	for i := 0; i < len(at); i += 2 { // with those between still in use
		if !h.release(at[i]) {
			t.Errorf("%#x was not freed", at[i])
		}
	}
	for _, p := range at {
		h.release(p)
	}
	if len(h.free) != 1 || h.free[0] != (hole{1 << 40, size}) || len(h.used) != 0 {
		t.Errorf("all freed: %v and %v", h.free, h.used)
	}
	if h.release(at[0]) || h.release(1) || h.alloc(0) != 0 || h.alloc(1<<63) != 0 {
		t.Error("freed twice, or allocated nothing")
	}
}
