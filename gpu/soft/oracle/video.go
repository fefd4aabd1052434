package oracle

import (
	"math/big"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// video evaluates a video instruction (PTX ISA, "Video Instructions").
func video(in *ptx.Inst, types []ptx.Type, v []uint64) uint64 {
	op := in.Op[1:]
	switch op[len(op)-1] {
	case '2':
		return videoSIMD(in, op[:len(op)-1], types, v, 2)
	case '4':
		return videoSIMD(in, op[:len(op)-1], types, v, 1)
	}
	source := func(i int) *big.Int {
		bytes, at := selected(in.Args[i+1].Parts())
		return integer(v[i]>>(8*at), sized(types[i+1], bytes))
	}
	tmp := videoPart(in, op, source(0), source(1))
	bytes, at := selected(in.Args[0].Parts())
	if in.Has("sat") {
		lo, hi := limits(sized(types[0], bytes))
		tmp = clamp(tmp, lo, hi)
	}
	if len(v) < 3 {
		return wrap(tmp, 32)
	}
	c := integer(v[2], types[0])
	switch {
	case in.Has("add"):
		return wrap(new(big.Int).Add(tmp, c), 32)
	case in.Has("min") && c.Cmp(tmp) < 0, in.Has("max") && c.Cmp(tmp) > 0:
		return wrap(c, 32)
	case in.Has("min"), in.Has("max"):
		return wrap(tmp, 32)
	}
	merged := [4]byte{byte(v[2]), byte(v[2] >> 8), byte(v[2] >> 16), byte(v[2] >> 24)}
	for i := range bytes {
		merged[at+i] = byte(wrap(tmp, 32) >> (8 * i))
	}
	return uint64(merged[0]) | uint64(merged[1])<<8 | uint64(merged[2])<<16 | uint64(merged[3])<<24
}

// selected returns how many bytes a selector of one part selects, and the first of
// them.
func selected(name string) (bytes, at uint32) {
	switch name {
	case "b0", "b1", "b2", "b3":
		return 1, uint32(name[1] - '0')
	case "h0":
		return 2, 0
	case "h1":
		return 2, 2
	}
	return 4, 0
}

// videoSIMD evaluates a SIMD video instruction, on parts of the given number of bytes.
func videoSIMD(in *ptx.Inst, op string, types []ptx.Type, v []uint64, bytes uint32) uint64 {
	n := 4 / bytes
	defaults := map[uint32][3]string{2: {"h10", "h10", "h32"}, 1: {"b3210", "b3210", "b7654"}}[bytes]
	var names [3]string
	for i := range names {
		if names[i] = in.Args[i].Parts(); names[i] == "" {
			names[i] = defaults[i]
		}
	}
	both := v[0] | v[1]<<32
	element := func(i, part uint32) *big.Int {
		which := uint32(names[i][n-part] - '0') // the last digit selects part 0
		return integer(both>>(8*bytes*which), sized(types[i], bytes))
	}
	sum, merged := new(big.Int).SetUint64(v[2]), uint64(0)
	for part := range n {
		if !strings.ContainsRune(names[0], rune('0'+part)) {
			merged |= v[2] & ((1<<(8*bytes) - 1) << (8 * bytes * part))
			continue
		}
		t := videoPart(in, op, element(1, part), element(2, part))
		if in.Has("sat") {
			lo, hi := limits(sized(types[0], bytes))
			t = clamp(t, lo, hi)
		}
		sum.Add(sum, t)
		merged |= wrap(t, 8*bytes) << (8 * bytes * part)
	}
	if in.Has("add") {
		return wrap(sum, 32)
	}
	return merged
}

func videoPart(in *ptx.Inst, op string, a, b *big.Int) *big.Int {
	switch op {
	case "shl", "shr":
		n := uint(b.Uint64() & 31)
		if in.Has("clamp") {
			n = uint(min(b.Uint64(), 32))
		}
		if op == "shl" {
			return new(big.Int).Lsh(a, n)
		}
		return shiftDown(a, uint32(n))
	case "set":
		c := a.Cmp(b)
		yes := map[string]bool{"eq": c == 0, "ne": c != 0, "lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[in.Mods[2]]
		return new(big.Int).SetUint64(boolean(yes))
	case "sub":
		return new(big.Int).Sub(a, b)
	case "absdiff":
		d := new(big.Int).Sub(a, b)
		return d.Abs(d)
	case "min", "max":
		if (a.Cmp(b) < 0) == (op == "min") {
			return a
		}
		return b
	}
	d := new(big.Int).Add(a, b)
	if op == "avrg" {
		if d.Sign() >= 0 {
			d.Add(d, big.NewInt(1))
		}
		return shiftDown(d, 1)
	}
	return d
}

// sized returns the type of a part of the given number of bytes, signed if t is.
func sized(t ptx.Type, bytes uint32) ptx.Type {
	if t.Signed() {
		return map[uint32]ptx.Type{1: ptx.S8, 2: ptx.S16, 4: ptx.S32}[bytes]
	}
	return map[uint32]ptx.Type{1: ptx.U8, 2: ptx.U16, 4: ptx.U32}[bytes]
}
