package ops

import (
	"math"
	"math/rand"
	"testing"
)

// TestHalfRoundTrip checks that every half is unchanged by widening and narrowing.
func TestHalfRoundTrip(t *testing.T) {
	for h := range uint32(1 << 16) {
		if h&0x7fff <= 0x7c00 && toF16(float64(f16(h))) != h {
			t.Fatalf("toF16(f16(%#x)) = %#x, want %#x", h, toF16(float64(f16(h))), h)
		}
		if h&0x7fff <= 0x7f80 && toBF16(float64(bf16(h))) != h {
			t.Fatalf("toBF16(bf16(%#x)) = %#x, want %#x", h, toBF16(float64(bf16(h))), h)
		}
	}
}

// TestHalfRoundsToNearestEven checks that narrowing returns the nearer of two
// neighbors, and the even one at a tie.
func TestHalfRoundsToNearestEven(t *testing.T) {
	for h := range uint32(0x7bff) {
		lo, hi := float64(f16(h)), float64(f16(h+1))
		mid := (lo + hi) / 2 // exact
		if got, want := toF16(mid), h+h&1; got != want {
			t.Fatalf("toF16 of the tie above %#x = %#x, want %#x", h, got, want)
		}
		if toF16(math.Nextafter(mid, 0)) != h || toF16(math.Nextafter(mid, math.Inf(1))) != h+1 {
			t.Fatalf("toF16 next to the tie above %#x = %#x and %#x, want %#x and %#x", h, toF16(math.Nextafter(mid, 0)), toF16(math.Nextafter(mid, math.Inf(1))), h, h+1)
		}
	}
}

// TestFMARoundsOnce compares fmaF32 with exact arithmetic, also where a first rounding
// to f64 would result in a tie.
func TestFMARoundsOnce(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 20000 {
		a, b := rnd.Uint32()&0xbfffffff, rnd.Uint32()&0xbfffffff
		c := rnd.Uint32() & 0xbfffffff
		if rnd.Intn(2) == 0 { // near-ties: few significant bits, far apart
			a, b, c = a&0xfff80000|1<<uint(rnd.Intn(4)), b&0xfff80000, c&0xff800000
		}
		if got, want := fmaF32(a, b, c), directed32(opFMA, a, b, c, Nearest); got != want {
			t.Fatalf("fma(%#x, %#x, %#x) = %#x, want %#x", a, b, c, got, want)
		}
	}
}
