package ops

import "math/bits"

// Integer operations of one lane. Division by zero and INT_MIN / -1 are undefined in
// PTX; these functions return what the hardware is known to return.

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func clampS32(v int64) uint32 { return uint32(int32(min(max(v, -1<<31), 1<<31-1))) }

func mulHiU64(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }

func mulHiS64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
}

func divU32(a, b uint32) uint32 {
	if b == 0 {
		return 0xffffffff
	}
	return a / b
}

func remU32(a, b uint32) uint32 {
	if b == 0 {
		return 0xffffffff
	}
	return a % b
}

func divS32(a, b int32) uint32 {
	if b == 0 {
		return 0xffffffff
	}
	return uint32(a / b)
}

func remS32(a, b int32) uint32 {
	if b == 0 {
		return 0xffffffff
	}
	return uint32(a % b)
}

func divU64(a, b uint64) uint64 {
	if b == 0 {
		return 1<<64 - 1
	}
	return a / b
}

func remU64(a, b uint64) uint64 {
	if b == 0 {
		return 1<<64 - 1
	}
	return a % b
}

func divS64(a, b int64) uint64 {
	if b == 0 {
		return 1<<64 - 1
	}
	return uint64(a / b)
}

func remS64(a, b int64) uint64 {
	if b == 0 {
		return 1<<64 - 1
	}
	return uint64(a % b)
}

func absS32(a int32) uint32 {
	if a < 0 {
		return uint32(-a)
	}
	return uint32(a)
}

func absS64(a int64) uint64 {
	if a < 0 {
		return uint64(-a)
	}
	return uint64(a)
}

// shiftAmount returns the result of bfind.shiftamt: the left shift that moves the found
// bit, which is number length-1, to the top.
func shiftAmount(length, width uint32) uint32 {
	if length == 0 {
		return 0xffffffff
	}
	return width - length
}

func bfeU32(a, pos, length uint32) uint32 {
	pos, length = pos&0xff, length&0xff
	return a >> pos & (1<<length - 1)
}

// bfeS32 extends the sign bit of the field, or the topmost bit if the field extends
// past it (PTX ISA, "bfe").
func bfeS32(a, pos, length uint32) uint32 {
	pos, length = pos&0xff, length&0xff
	if length == 0 {
		return 0
	}
	v := uint32(int32(a) >> min(pos, 31))
	if pos+length >= 32 {
		return v
	}
	return uint32(int32(v<<(32-length)) >> (32 - length))
}

// bfeU64, bfeS64 and bfiB64 do not limit position and length to 8 bits, unlike those of
// 32 bits.
func bfeU64(a uint64, pos, length uint32) uint64 { return a >> pos & (1<<length - 1) }

func bfeS64(a uint64, pos, length uint32) uint64 {
	if length == 0 {
		return 0
	}
	v := uint64(int64(a) >> min(pos, 63))
	if length >= 64 || pos+length >= 64 {
		return v
	}
	return uint64(int64(v<<(64-length)) >> (64 - length))
}

func bfiB32(a, b, pos, length uint32) uint32 {
	pos, length = pos&0xff, length&0xff
	mask := uint32(1<<length-1) << pos
	return b&^mask | a<<pos&mask
}

func bfiB64(a, b uint64, pos, length uint32) uint64 {
	mask := uint64(1<<length-1) << pos
	return b&^mask | a<<pos&mask
}

func extend8(v uint32, signed bool) uint32 {
	if signed {
		return uint32(int32(int8(v)))
	}
	return v & 0xff
}

func extend16(v uint32, signed bool) uint32 {
	if signed {
		return uint32(int32(int16(v)))
	}
	return v & 0xffff
}

func dp4a(a, b, c uint32, sa, sb bool) uint32 {
	for i := 0; i < 32; i += 8 {
		c += extend8(a>>i, sa) * extend8(b>>i, sb)
	}
	return c
}

func dp2a(a, b, c uint32, sa, sb bool) uint32 {
	return c + extend16(a, sa)*extend8(b, sb) + extend16(a>>16, sa)*extend8(b>>8, sb)
}

func prmt(a, b, sel uint32) uint32 {
	v := uint64(b)<<32 | uint64(a)
	var d uint32
	for i := 0; i < 4; i++ {
		s := sel >> (4 * i)
		x := uint32(v>>(s&7*8)) & 0xff
		if s&8 != 0 { // replicate the byte's sign
			x = uint32(int32(int8(x))>>7) & 0xff
		}
		d |= x << (8 * i)
	}
	return d
}

// prmtB4e extracts four bytes downwards from byte c, wrapping around.
func prmtB4e(a, b, c uint32) uint32 {
	n := c & 3
	return prmt(a, b, n|(n-1)&7<<4|(n-2)&7<<8|(n-3)&7<<12)
}

func lop3(a, b, c, table uint32) uint32 {
	var d uint32
	for i := range uint32(8) {
		if table>>i&1 == 0 {
			continue
		}
		t := ^uint32(0)
		for j, v := range [3]uint32{c, b, a} {
			if i>>j&1 == 0 {
				v = ^v
			}
			t &= v
		}
		d |= t
	}
	return d
}
