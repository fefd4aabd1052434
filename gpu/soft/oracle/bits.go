package oracle

import (
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// bitField evaluates shifts, counts, bit fields, permutations and dot products, bit by
// bit. It returns false for another instruction.
func bitField(in *ptx.Inst, t ptx.Type, v []uint64) (uint64, bool) {
	bits := 8 * t.Size()
	x := truncate(v[0], t.Size())
	at := func(i uint32) uint64 { return x >> i & 1 }
	switch in.Op {
	case "shl":
		n := min(truncate(v[1], 4), 128)
		return wrap(new(big.Int).Lsh(integer(x, t), uint(n)), bits), true
	case "shr":
		return wrap(shiftDown(integer(x, t), uint32(min(truncate(v[1], 4), 128))), bits), true
	case "shf":
		n := uint32(v[2])
		if n > 32 {
			if n = n % 32; in.Has("clamp") {
				n = 32
			}
		} else if n == 32 && in.Has("wrap") {
			n = 0
		}
		both := new(big.Int).SetUint64(v[1]<<32 | truncate(v[0], 4))
		if in.Has("l") {
			return wrap(shiftDown(both.Lsh(both, uint(n)), 32), 32), true
		}
		return wrap(shiftDown(both, n), 32), true
	case "popc":
		n := uint64(0)
		for i := range bits {
			n += at(i)
		}
		return n, true
	case "clz":
		n := uint64(0)
		for i := bits; i > 0 && at(i-1) == 0; i-- {
			n++
		}
		return n, true
	case "bfind":
		want := uint64(1)
		if t.Signed() && at(bits-1) == 1 {
			want = 0
		}
		for i := bits; i > 0; i-- {
			if at(i-1) == want {
				if in.Has("shiftamt") {
					return uint64(bits - i), true
				}
				return uint64(i - 1), true
			}
		}
		return 0xffffffff, true
	case "brev":
		var d uint64
		for i := range bits {
			d |= at(i) << (bits - 1 - i)
		}
		return d, true
	case "bmsk":
		return maskOfBits(in, v), true
	case "szext":
		return sizeExtended(in, v), true
	case "fns":
		return nthSet(v), true
	case "bfe":
		pos, n := field(t, v[1], v[2])
		sign := uint64(0)
		if t.Signed() && n > 0 {
			sign = at(min(pos+n-1, bits-1))
		}
		var d uint64
		for i := range bits {
			b := sign
			if i < n && pos+i < bits {
				b = at(pos + i)
			}
			d |= b << i
		}
		return d, true
	case "bfi":
		d := v[1]
		pos, n := field(t, v[2], v[3])
		for i := uint32(0); i < n && pos+i < bits; i++ {
			d = d&^(1<<(pos+i)) | at(i)<<(pos+i)
		}
		return d, true
	case "prmt":
		return permute(in, v), true
	case "dp4a", "dp2a":
		return dot(in, v), true
	}
	return 0, false
}

// field returns the position and the length of a bit field, limited to 64: instructions
// of 32 bits read 8 bits of both operands, those of 64 bits read all.
func field(t ptx.Type, pos, n uint64) (uint32, uint32) {
	if t.Size() == 4 {
		return uint32(pos & 0xff), uint32(n & 0xff)
	}
	return uint32(min(truncate(pos, 4), 64)), uint32(min(truncate(n, 4), 64))
}

func permute(in *ptx.Inst, v []uint64) uint64 {
	both := v[1]<<32 | truncate(v[0], 4)
	n := uint32(v[2] & 3)
	pick := [4]uint32{uint32(v[2]) & 15, uint32(v[2]>>4) & 15, uint32(v[2]>>8) & 15, uint32(v[2]>>12) & 15}
	// The rows of the table under prmt in the PTX ISA.
	switch mode := in.Mods[len(in.Mods)-1]; mode {
	case "f4e":
		pick = [4]uint32{n, n + 1, n + 2, n + 3}
	case "b4e":
		pick = [4]uint32{n, (n + 7) % 8, (n + 6) % 8, (n + 5) % 8}
	case "rc8":
		pick = [4]uint32{n, n, n, n}
	case "ecl":
		pick = [4]uint32{max(0, n), max(1, n), max(2, n), max(3, n)}
	case "ecr":
		pick = [4]uint32{min(0, n), min(1, n), min(2, n), min(3, n)}
	case "rc16":
		h := n & 1 * 2
		pick = [4]uint32{h, h + 1, h, h + 1}
	}
	var d uint64
	for i, p := range pick {
		b := both >> (8 * (p & 7)) & 0xff
		if p&8 != 0 {
			b = b >> 7 * 0xff
		}
		d |= b << (8 * i)
	}
	return d
}

func dot(in *ptx.Inst, v []uint64) uint64 {
	signedA, signedB := in.Mods[len(in.Mods)-2] == "s32", in.Mods[len(in.Mods)-1] == "s32"
	part := func(x uint64, i, bytes uint32, signed bool) int64 {
		x = truncate(x>>(8*bytes*i), bytes)
		if signed && x>>(8*bytes-1) == 1 {
			return int64(x) - 1<<(8*bytes)
		}
		return int64(x)
	}
	sum := int64(truncate(v[2], 4))
	if in.Op == "dp4a" {
		for i := range uint32(4) {
			sum += part(v[0], i, 1, signedA) * part(v[1], i, 1, signedB)
		}
	} else {
		first := uint32(0)
		if in.Has("hi") {
			first = 2
		}
		for i := range uint32(2) {
			sum += part(v[0], i, 2, signedA) * part(v[1], first+i, 1, signedB)
		}
	}
	return truncate(uint64(sum), 4)
}

// maskOfBits, sizeExtended and nthSet evaluate bmsk, szext and fns as their pseudocode
// in the PTX ISA does.
func maskOfBits(in *ptx.Inst, v []uint64) uint64 {
	a, b := v[0]&31, v[1]&31
	mask0, mask1 := truncate(^uint64(0)<<a, 4), truncate(^uint64(0)<<(a+b), 4)
	none := a+b >= 32
	if in.Has("clamp") {
		if v[0] >= 32 {
			none, mask0 = true, 0
		}
		none = none || v[1] >= 32
	}
	if none {
		mask1 = 0
	}
	return mask0 &^ mask1
}

func sizeExtended(in *ptx.Inst, v []uint64) uint64 {
	b, large := v[1]&31, in.Has("clamp") && v[1] >= 32
	mask := truncate(^uint64(0)<<b, 4)
	if large {
		mask = 0
	}
	r := v[0] &^ mask
	if in.Has("s32") && b != 0 && !large && v[0]>>((b-1)&31)&1 == 1 {
		r |= mask
	}
	return r
}

func nthSet(v []uint64) uint64 {
	set := func(at int64) bool { return v[0]>>uint(at)&1 == 1 }
	base, offset := int64(v[1]), int64(int32(v[2]))
	if offset == 0 {
		if base < 32 && set(base) {
			return uint64(base)
		}
		return 0xffffffff
	}
	count, inc := offset-1, int64(1)
	if offset < 0 {
		count, inc = -offset-1, -1
	}
	for at := base; at >= 0 && at < 32; at += inc {
		if !set(at) {
			continue
		}
		if count == 0 {
			return uint64(at)
		}
		count--
	}
	return 0xffffffff
}
