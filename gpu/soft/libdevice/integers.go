package libdevice

import "math/bits"

// integers adds the functions of integers that are not instructions.
func integers(all map[string]any) {
	all["ffs"] = func(x uint32) uint32 { return uint32(bits.TrailingZeros32(x)+1) % 33 }
	all["ffsll"] = func(x uint64) uint32 { return uint32(bits.TrailingZeros64(x)+1) % 65 }
	all["hadd"] = func(x, y int32) int32 { return int32((int64(x) + int64(y)) >> 1) }
	all["rhadd"] = func(x, y int32) int32 { return int32((int64(x) + int64(y) + 1) >> 1) }
	all["uhadd"] = func(x, y uint32) uint32 { return uint32((uint64(x) + uint64(y)) >> 1) }
	all["urhadd"] = func(x, y uint32) uint32 { return uint32((uint64(x) + uint64(y) + 1) >> 1) }
	all["hiloint2double"] = func(hi, lo uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }
	all["double2hiint"] = func(x uint64) uint32 { return uint32(x >> 32) }
	all["double2loint"] = func(x uint64) uint32 { return uint32(x) }
	for _, part := range []uint{2, 4} {
		parallel(all, part)
	}
}
