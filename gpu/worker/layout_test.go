package worker

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func goodLayout() layout {
	return layout{
		magic: abi.Magic, major: 1, minor: 0, size: 1 << 20,
		ring: 4096, ringSize: 4096, slots: 8192, slotCount: 64, chunkState: 12288, arena: 16384, chunkSize: 4096, chunkCount: 16,
	}
}

func TestLayoutRules(t *testing.T) {
	if err := goodLayout().check(1<<20, 1, 0); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*layout){
		"magic":                  func(l *layout) { l.magic++ },
		"version":                func(l *layout) { l.minor = 1 },
		"size":                   func(l *layout) { l.size-- },
		"ring of 3 pages":        func(l *layout) { l.ringSize = 3 * 4096 },
		"no ring":                func(l *layout) { l.ringSize = 0 },
		"ring too small":         func(l *layout) { l.ringSize = 2048 },
		"ring too big":           func(l *layout) { l.ringSize = 32 << 20 },
		"ring in the header":     func(l *layout) { l.ring = 0 },
		"ring not aligned":       func(l *layout) { l.ring = 4104 },
		"ring beyond the end":    func(l *layout) { l.ring = 1 << 20 },
		"ring wraps":             func(l *layout) { l.ring = 1<<64 - 4096 },
		"no slots":               func(l *layout) { l.slotCount = 0 },
		"too many slots":         func(l *layout) { l.slotCount = abi.MaxSlots + 1 },
		"slots wrap":             func(l *layout) { l.slotCount = 1 << 60 },
		"slots over the ring":    func(l *layout) { l.slots = 4096 + 64 },
		"slots not aligned":      func(l *layout) { l.slots += 8 },
		"too many chunks":        func(l *layout) { l.chunkCount = abi.MaxChunks + 1 },
		"chunks too big":         func(l *layout) { l.chunkSize = 32 << 20 },
		"chunks of an odd size":  func(l *layout) { l.chunkSize = 4097 },
		"chunks of no size":      func(l *layout) { l.chunkSize = 0 },
		"arena beyond the end":   func(l *layout) { l.chunkSize = 1 << 20 },
		"arena over the slots":   func(l *layout) { l.arena = 8192 },
		"chunk states in a slot": func(l *layout) { l.chunkState = 8192 },
		"chunk states unaligned": func(l *layout) { l.chunkState++ },
	} {
		l := goodLayout()
		spoil(&l)
		if err := l.check(1<<20, 1, 0); err == nil {
			t.Errorf("%s: the layout was accepted", name)
		}
	}
	l := goodLayout()
	l.chunkCount, l.chunkState, l.arena = 0, 0, 0 // a guest without an arena
	if err := l.check(1<<20, 1, 0); err != nil {
		t.Error(err)
	}
}

func TestChunks(t *testing.T) {
	l := goodLayout()
	for _, c := range []struct {
		off, n, first, count uint64
		ok                   bool
	}{
		{l.arena, 1, 0, 1, true}, {l.arena, 4096, 0, 1, true}, {l.arena + 4095, 2, 0, 2, true},
		{l.arena + 15*4096, 4096, 15, 1, true}, {l.arena + 15*4096, 4097, 0, 0, false}, {l.arena - 1, 2, 0, 0, false},
		{l.arena, 0, 0, 0, false}, {l.arena, 1<<64 - 1, 0, 0, false}, {1<<64 - 1, 1, 0, 0, false}, {l.arena + 16*4096, 1, 0, 0, false},
	} {
		if first, count, ok := l.chunks(c.off, c.n); first != c.first || count != c.count || ok != c.ok {
			t.Errorf("chunks of %d bytes at %d = %d, %d, %v, want %d, %d, %v", c.n, c.off, first, count, ok, c.first, c.count, c.ok)
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add(uint64(4096), uint64(4096), uint64(8192), uint64(64), uint64(12288), uint64(16384), uint64(4096), uint64(16), uint64(1<<20))
	f.Fuzz(func(t *testing.T, ring, ringSize, slots, slotCount, chunkState, arena, chunkSize, chunkCount, size uint64) {
		l := layout{abi.Magic, 1, 0, size, ring, ringSize, slots, slotCount, chunkState, arena, chunkSize, chunkCount}
		if size > abi.MaxRegionSize || l.check(size, 1, 0) != nil {
			return
		}
		for name, end := range map[string]uint64{
			"ring": ring + ringSize, "slots": slots + slotCount*abi.SlotSize,
		} {
			if end > size || end < abi.HeaderSize {
				t.Errorf("%s ends at %d, want at most %d and after the header", name, end, size)
			}
		}
		if chunkCount > 0 && (chunkState+4*chunkCount > size || arena+chunkSize*chunkCount > size) {
			t.Errorf("chunk states or arena end after the region's %d bytes, want them inside", size)
		}
	})
}
