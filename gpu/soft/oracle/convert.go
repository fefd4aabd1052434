package oracle

import (
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// convert evaluates cvt for one thread (PTX ISA, "cvt").
func convert(in *ptx.Inst, v []uint64) (uint64, error) {
	if in.Has("pack") {
		return packed(in, v), nil
	}
	var types []ptx.Type
	mode, toInteger := "rn", false
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			types = append(types, t)
			continue
		}
		switch m {
		case "rni", "rzi", "rmi", "rpi":
			mode, toInteger = m[:2], true
		case "rn", "rz", "rm", "rp", "rna":
			mode = m
		}
	}
	to, from := types[0], types[1]
	switch from {
	case ptx.E4M3x2, ptx.E5M2x2:
		name := strings.TrimSuffix(from.String(), "x2")
		hi, lo := valueOf(v[0]>>8, name), valueOf(v[0]&0xff, name)
		return relu(in, hi).encode(f16format, mode)<<16 | relu(in, lo).encode(f16format, mode), nil
	}
	switch to {
	case ptx.E4M3x2, ptx.E5M2x2:
		if from == ptx.F16x2 {
			return eightBits(relu(in, decode(v[0]>>16, f16format)), to)<<8 | eightBits(relu(in, decode(v[0]&0xffff, f16format)), to), nil
		}
		return eightBits(relu(in, decode(v[0], f32format)), to)<<8 | eightBits(relu(in, decode(v[1], f32format)), to), nil
	case ptx.F16x2, ptx.BF16x2: // the first source goes to the upper half
		half := formatOf(map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}[to])
		hi, lo := decode(v[0], f32format), decode(v[1], f32format)
		return finite(in, relu(in, hi).encode(half, mode), half)<<16 | finite(in, relu(in, lo).encode(half, mode), half), nil
	case ptx.TF32:
		n := decode(v[0], f32format)
		d := relu(in, n).encode(format{8, 10}, mode)
		if n.nan {
			if mode == "rna" && !in.Has("satfinite") {
				return v[0] >> 13 << 13, nil // truncated
			}
			return 0x7fffe000, nil
		}
		if inf := (format{8, 10}).infBits(); in.Has("satfinite") && d&^(1<<18) == inf {
			d--
		}
		return d << 13, nil
	}
	if from.Float() {
		n := decode(v[0], formatOf(from))
		if in.Has("ftz") && from == ptx.F32 {
			n = n.flushed(f32format)
		}
		if !to.Float() {
			return floatToInteger(n, from, to, mode), nil
		}
		if n.nan && !in.Has("sat") && (from == ptx.F64 || to == ptx.F64) {
			return carried(v[0], formatOf(from), formatOf(to)), nil
		}
		if toInteger && !n.nan && !n.inf {
			n.m, n.e = n.rounded(0, mode), 0
		}
		return finish(in, relu(in, n), to, mode), nil
	}
	x := integer(v[0], from)
	if to.Float() {
		return finish(in, integral(x), to, mode), nil
	}
	if in.Has("sat") {
		lo, hi := limits(to)
		x = clamp(x, lo, hi)
	}
	return extended(wrap(x, 8*to.Size()), to), nil
}

// carried returns the NaN v in another format. Conversions between f64 and other
// formats keep the sign and the upper bits of the payload, and make the NaN quiet.
func carried(v uint64, from, to format) uint64 {
	payload := v & (1<<from.frac - 1)
	if from.frac <= to.frac {
		payload <<= to.frac - from.frac
	} else {
		payload >>= from.frac - to.frac
	}
	d := to.infBits() | payload | 1<<(to.frac-1)
	if v&from.signBit() != 0 {
		d |= to.signBit()
	}
	return d
}

// eightBits returns the encoding of 8 bits whose value is nearest to n, and the even
// one of two. A value beyond the largest finite one becomes that.
func eightBits(n number, t ptx.Type) uint64 {
	if n.nan {
		return 0x7f
	}
	name, largest := "e4m3", uint64(0x7e)
	if t == ptx.E5M2x2 {
		name, largest = "e5m2", 0x7b
	}
	best, sign := largest, uint64(0)
	if n.neg {
		sign = 0x80
	}
	if n.inf {
		return sign | largest
	}
	n.neg = true
	distance := func(v uint64) number {
		d := add(valueOf(v, name), n, "rn")
		d.neg = false
		return d
	}
	least := distance(best)
	for v := range largest {
		d := distance(v)
		if c := compare(d, least, false); c < 0 || c == 0 && v%2 == 0 {
			best, least = v, d
		}
	}
	return sign | best
}

func relu(in *ptx.Inst, n number) number {
	if in.Has("relu") && n.neg && !n.nan {
		return zeroOf(false)
	}
	return n
}

// extended returns the value that a register wider than the type receives.
func extended(v uint64, t ptx.Type) uint64 {
	if t.Signed() {
		return signExtend(v, t)
	}
	return v
}

func finish(in *ptx.Inst, n number, to ptx.Type, mode string) uint64 {
	f := formatOf(to)
	d := finite(in, n.encode(f, mode), f)
	if in.Has("sat") {
		d = saturated(decode(d, f)).encode(f, mode)
	}
	if in.Has("ftz") && to == ptx.F32 {
		d = decode(d, f).flushed(f).encode(f, mode)
	}
	return d
}

// finite returns the largest finite number instead of an infinity, for .satfinite.
func finite(in *ptx.Inst, d uint64, f format) uint64 {
	if in.Has("satfinite") && d&^f.signBit() == f.infBits() {
		return d - 1
	}
	return d
}

// packed evaluates cvt.pack, bit by bit as its pseudocode does.
func packed(in *ptx.Inst, v []uint64) uint64 {
	name := in.Mods[2]
	size, _ := strconv.Atoi(name[1:])
	low, high := int64(0), int64(1)<<size-1
	if name[0] == 's' {
		low, high = -1<<(size-1), int64(1)<<(size-1)-1
	}
	part := func(x uint64) uint64 { return uint64(min(max(int64(int32(x)), low), high)) }
	ta, d := part(v[0]), part(v[1])
	set := func(i int, bit uint64) { d = d&^(1<<i) | bit&1<<i }
	for i := size; i < 2*size; i++ {
		set(i, ta>>(i-size))
	}
	for i := 2 * size; i < 32; i++ {
		set(i, v[2]>>(i-2*size))
	}
	return truncate(d, 4)
}

func floatToInteger(n number, from, to ptx.Type, mode string) uint64 {
	lo, hi := limits(to)
	switch {
	case n.nan && from != ptx.F64 && to.Size() != 8:
		return 0
	case n.nan:
		return extended(1<<(8*to.Size()-1), to)
	case n.inf && n.neg:
		return extended(wrap(lo, 8*to.Size()), to)
	case n.inf:
		return extended(wrap(hi, 8*to.Size()), to)
	}
	x := n.rounded(0, mode)
	if n.neg {
		x.Neg(x)
	}
	return extended(wrap(clamp(x, lo, hi), 8*to.Size()), to)
}
