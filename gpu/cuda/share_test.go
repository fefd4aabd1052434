package cuda

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// Whatever fails while memory is prepared for sharing, the memory stays unchanged.
// Shared memory is one piece that can be exported, and small allocations are refused.
func TestShareOrStay(t *testing.T) {
	d, g := newDouble(t), &gate{}
	c := open(t, d, g)
	const size = 150 << 20 // three pieces
	p := must[uint64](t)(c.MemAlloc(size))
	small := must[uint64](t)(c.MemAlloc(1000))
	want := bytes.Repeat([]byte("basalt"), 100_000)
	last := p + size - uint64(len(want))
	if err := wait(t, func(done func(error)) error { return c.CopyHtoD(nil, last, want, done) }); err != nil {
		t.Fatal(err)
	}
	g.settled(t)
	s := c.(worker.Sharer)
	if _, err := s.Share(small); !errors.Is(err, abi.ErrNotSupported) {
		t.Errorf("Share of a part of a slab = %v, want %v", err, abi.ErrNotSupported)
	}
	for _, fails := range []string{"cuMemCreate 2", "cuMemMap 999", "cuMemSetAccess 999"} {
		d.play(t, fails+" ")
		if _, err := s.Share(p); err == nil {
			t.Fatalf("Share with a failing %s returned no error", fails)
		}
	}
	d.play(t, "")
	d.take(t)
	m := must[worker.Shared](t)(s.Share(p))
	defer m.File.Close()
	if log := d.take(t); m.Size != size || !slices.Contains(log, "export 157286400") {
		t.Errorf("%d bytes shared, want %d and an export; calls:\n%q", m.Size, size, log)
	}
	got := make([]byte, len(want))
	if err := wait(t, func(done func(error)) error { return c.CopyDtoH(nil, got, last, done) }); err != nil || !bytes.Equal(got, want) {
		t.Errorf("contents changed, or the copy failed: %v", err)
	}
	if err := errors.Join(c.MemFree(p), c.MemFree(small), wait(t, c.Notify)); err != nil {
		t.Error(err)
	}
}
