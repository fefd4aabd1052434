package ops

import (
	"math"
	"testing"
)

// Every number of 8 bits is its own nearest, and between two neighbours the even one
// is taken.
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
				t.Errorf("%s: %v = %#x, want %#x", name, x, got, v)
			}
			if got := f(-x); uint64(got) != v|0x80 {
				t.Errorf("%s: %v = %#x, want %#x", name, -x, got, v|0x80)
			}
			if v < largest {
				if got := f((x + value(v+1)) / 2); uint64(got) != v+v&1 {
					t.Errorf("%s: between %#x and the next: %#x", name, v, got)
				}
			}
		}
		for _, x := range []float64{1e9, math.Inf(1)} {
			if got := f(x); uint64(got) != largest {
				t.Errorf("%s: %v = %#x, want %#x", name, x, got, largest)
			}
		}
	}
}
