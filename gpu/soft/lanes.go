package soft

import "math/bits"

// eachLane visits the active lanes.
func eachLane(act []uint32, f func(lane int)) {
	for w, a := range act {
		for ; a != 0; a &= a - 1 {
			f(w*warpSize + bits.TrailingZeros32(a))
		}
	}
}

// eachLaneErr visits the active lanes until one fails.
func eachLaneErr(act []uint32, f func(lane int) error) error {
	for w, a := range act {
		for ; a != 0; a &= a - 1 {
			if err := f(w*warpSize + bits.TrailingZeros32(a)); err != nil {
				return err
			}
		}
	}
	return nil
}
