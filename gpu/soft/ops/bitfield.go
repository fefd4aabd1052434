package ops

// lowS16 is a half of a word.
func lowS16(v int16) uint32 { return uint32(uint16(v)) }

// bitMask is b ones from bit a on (PTX ISA, "Integer Arithmetic Instructions": bmsk).
// Counts wrap around at 32, or clamp says that those beyond are cut off.
func bitMask(a, b uint32, clamp bool) uint32 {
	if clamp && a >= 32 {
		return 0
	}
	if clamp && b >= 32 {
		b = 32
	} else {
		b &= 31
	}
	a &= 31
	return uint32((uint64(1)<<b - 1) << a)
}

// sizeExtend keeps the b low bits of a, and extends them (szext).
func sizeExtend(a, b uint32, clamp, signed bool) uint32 {
	if clamp && b >= 32 {
		return a
	}
	b &= 31
	if b == 0 {
		return 0
	}
	if signed {
		return uint32(int32(a<<(32-b)) >> (32 - b))
	}
	return a << (32 - b) >> (32 - b)
}

// findNth is the place of the n-th bit that is set in a mask from a place on, upwards
// or, when n is negative, downwards; with n zero the place itself (fns).
func findNth(mask, base uint32, n int32) uint32 {
	step := int32(1)
	if n < 0 {
		step, n = -1, -n
	}
	if n == 0 {
		step, n = 32, 1 // this bit and no other
	}
	for at := int64(base); at >= 0 && at < 32; at += int64(step) {
		if mask>>at&1 != 0 {
			if n--; n == 0 {
				return uint32(at)
			}
		}
	}
	return 0xffffffff
}
