package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// eachLane calls f for each active lane.
func eachLane(act []uint32, f func(lane int)) {
	for w, a := range act {
		for ; a != 0; a &= a - 1 {
			f(w*ir.WarpSize + bits.TrailingZeros32(a))
		}
	}
}

// eachLaneErr calls f for each active lane until it returns an error.
func eachLaneErr(act []uint32, f func(lane int) error) error {
	for w, a := range act {
		for ; a != 0; a &= a - 1 {
			if err := f(w*ir.WarpSize + bits.TrailingZeros32(a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// having returns the lanes among the given ones whose value is x.
func having[T uint32 | uint64](v []T, lanes uint32, x T) uint32 {
	found := uint32(0)
	for l, y := range v[:ir.WarpSize] {
		found |= bitOf(y == x) << l
	}
	return found & lanes
}

// bitOf returns 1 for true.
func bitOf(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
