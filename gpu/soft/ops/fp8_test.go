package ops

import (
	"math"
	"testing"
)

// TestEightBits checks that every number of 8 bits is its own nearest, and that the
// even one of two neighbors is chosen at a tie.
func TestEightBits(t *testing.T) {
	for name, f := range map[string]func(float64) uint32{"e4m3": toE4M3, "e5m2": toE5M2} {
		value := ElementByName(name).decode
		largest := uint64(0x7e)
		if name == "e5m2" {
			largest = 0x7b
		}
		for v := range largest + 1 {
			x := value(v)
			if got := f(x); uint64(got) != v {
				t.Errorf("%s of %v = %#x, want %#x", name, x, got, v)
			}
			if got := f(-x); uint64(got) != v|0x80 {
				t.Errorf("%s of %v = %#x, want %#x", name, -x, got, v|0x80)
			}
			if v < largest {
				if got := f((x + value(v+1)) / 2); uint64(got) != v+v&1 {
					t.Errorf("%s of the tie above %#x = %#x, want %#x", name, v, got, v+v&1)
				}
			}
		}
		for _, x := range []float64{1e9, math.Inf(1)} {
			if got := f(x); uint64(got) != largest {
				t.Errorf("%s of %v = %#x, want the largest, %#x", name, x, got, largest)
			}
		}
	}
}
