package abi

import "testing"

func TestWindowCheck(t *testing.T) {
	for _, w := range append(Windows(), Window{WindowLowest, MinWindow}, Window{WindowEnd - MinWindow, MinWindow}) {
		if err := w.Check(); err != nil {
			t.Error(err)
		}
	}
	const base = 0x400000000000
	for name, w := range map[string]Window{
		"empty":                 {base, 0},
		"too small":             {base, MinWindow - WindowUnit},
		"too large":             {base, MaxWindow + WindowUnit},
		"all addresses":         {WindowLowest, ^uint64(0) &^ (WindowUnit - 1)},
		"odd base":              {base + 4096, MinWindow},
		"odd size":              {base, MinWindow + 4096},
		"null":                  {0, MinWindow},
		"low":                   {WindowLowest - WindowUnit, MinWindow},
		"stacks":                {0x7ff000000000, MinWindow},
		"over the end":          {WindowEnd - MinWindow + WindowUnit, MinWindow},
		"kernel":                {0xffff800000000000, MinWindow},
		"end of the numbers":    {^uint64(0) &^ (WindowUnit - 1), MinWindow},
		"end overflows to zero": {^uint64(MinWindow - 1), MinWindow},
	} {
		if w.Check() == nil {
			t.Errorf("%s: Check accepted window %v", name, w)
		}
	}
}

// The parts are adjacent, whatever the size, and the tail belongs to neither.
func TestWindowParts(t *testing.T) {
	for _, size := range []uint64{MinWindow, MinWindow + WindowUnit, MaxWindow / 4, MaxWindow} {
		w := Window{0x400000000000, size}
		d, h := w.Device(), w.Host()
		if d.Base != w.Base || d.Base+d.Size != h.Base || h.Base+h.Size+WindowTail != w.Base+w.Size {
			t.Errorf("parts of window %v = %v and %v, want them adjacent, followed by the tail", w, d, h)
		}
		if d.Size < 64<<20 || h.Size < 64<<20 || h.Base%WindowUnit != 0 {
			t.Errorf("parts of window %v = %v and %v: too small or not aligned", w, d, h)
		}
	}
}

func TestWindowContains(t *testing.T) {
	w := Window{0x400000000000, MinWindow}
	for _, c := range []struct {
		address, n uint64
		want       bool
	}{
		{w.Base, w.Size, true}, {w.Base, 0, true}, {w.Base + w.Size, 0, true}, {w.Base + w.Size - 1, 1, true},
		{w.Base - 1, 1, false}, {w.Base + w.Size, 1, false}, {w.Base, w.Size + 1, false}, {w.Base + 1, ^uint64(0), false},
		{0, 0, false}, {^uint64(0), 1, false},
	} {
		if got := w.Contains(c.address, c.n); got != c.want {
			t.Errorf("Contains(%#x, %d) of window %v = %v, want %v", c.address, c.n, w, got, c.want)
		}
	}
}
