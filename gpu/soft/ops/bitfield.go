package ops

// lowS16 returns the bits of v as the low half of a word.
func lowS16(v int16) uint32 { return uint32(uint16(v)) }

// bitMask returns b ones from bit a on (PTX ISA, "Integer Arithmetic Instructions":
// bmsk). Counts wrap around at 32, or with clamp are limited to 32.
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

// sizeExtend returns the b low bits of a, extended (PTX ISA, "szext").
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

// findNth returns the position of the n-th set bit of a mask, counted upwards from a
// position or, if n is negative, downwards. If n is zero it is the position itself, if
// that bit is set (PTX ISA, "fns").
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
