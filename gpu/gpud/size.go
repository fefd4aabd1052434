package gpud

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ParseSize parses a size in bytes: a whole number, alone or with one of the
// units B, KiB, MiB, GiB, TiB. Decimal units are refused.
func ParseSize(s string) (uint64, error) {
	digits := strings.TrimRight(s, "BKMGTPEiabcdefghjklmnopqrstuvwxyz ")
	unit := strings.TrimSpace(s[len(digits):])
	shift, ok := map[string]uint{"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}[unit]
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit, want B, KiB, MiB, GiB or TiB, e.g. 8GiB", s)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size %q: want a whole number of B, KiB, MiB, GiB or TiB, e.g. 8GiB", s)
	}
	if hi, lo := bits.Mul64(n, 1<<shift); hi == 0 {
		return lo, nil
	}
	return 0, fmt.Errorf("size %q does not fit in 64 bits", s)
}

// FormatSize formats a size so that ParseSize can parse it, in the largest unit
// without a fraction.
func FormatSize(n uint64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n != 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatUint(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10)
}
