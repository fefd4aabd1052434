package cli

import (
	"math"
	"testing"
)

func TestAmounts(t *testing.T) {
	for s, want := range map[string]int64{"12": 12_000_000, "12.50": 12_500_000, "0.000001": 1, "0": 0, "999999999999.999999": 999_999_999_999_999_999} {
		if got, err := parseMicros(s); err != nil || got != want {
			t.Errorf("parseMicros(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", ".5", "5.", "-1", "+1", "1e3", "1,5", "0.0000001", "9999999999999", "NaN", "0x1", "1_0", "١"} {
		if got, err := parseMicros(s); err == nil {
			t.Errorf("parseMicros(%q) = %d, want an error", s, got)
		}
	}
}

// FuzzAmount verifies that parsed amounts are never negative and survive formatting.
func FuzzAmount(f *testing.F) {
	f.Add("12.50")
	f.Add("0.000001")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseMicros(s)
		if err != nil {
			return
		}
		if n < 0 || n > math.MaxInt64/2 {
			t.Fatalf("parseMicros(%q) = %d, want 0 to %d", s, n, int64(math.MaxInt64/2))
		}
		if again, err := parseMicros(formatMicros(n)); err != nil || again != n {
			t.Fatalf("parseMicros(%q) = %d, parsed again after formatting = %d, %v; want the same", s, n, again, err)
		}
	})
}
