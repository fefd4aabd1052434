package oracle

import (
	"math/big"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// video is a video instruction on whole registers.
func video(in *ptx.Inst, types []ptx.Type, v []uint64) uint64 {
	bytes := uint32(4)
	op := in.Op[1:]
	switch op[len(op)-1] {
	case '2':
		bytes = 2
	case '4':
		bytes = 1
	}
	op = strings.TrimRight(op, "24")
	third := new(big.Int)
	if len(v) > 2 {
		third = integer(v[2], types[0])
	}
	sum, joined := new(big.Int).Set(third), uint64(0)
	for at := uint32(0); at < 4; at += bytes {
		t := videoPart(op, integer(v[0]>>(8*at), sized(types[1], bytes)), integer(v[1]>>(8*at), sized(types[2], bytes)))
		if in.Has("sat") {
			lo, hi := limits(sized(types[0], bytes))
			t = clamp(t, lo, hi)
		}
		sum.Add(sum, t)
		joined |= wrap(t, 8*bytes) << (8 * at)
	}
	result := integer(joined, types[0])
	switch {
	case in.Has("add"):
		return wrap(sum, 32)
	case in.Has("min") && third.Cmp(result) < 0, in.Has("max") && third.Cmp(result) > 0:
		result = third
	}
	return wrap(result, 32)
}

func videoPart(op string, a, b *big.Int) *big.Int {
	switch op {
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

// sized is the type of a part: so many bytes, signed as the register's type.
func sized(t ptx.Type, bytes uint32) ptx.Type {
	if t.Signed() {
		return map[uint32]ptx.Type{1: ptx.S8, 2: ptx.S16, 4: ptx.S32}[bytes]
	}
	return map[uint32]ptx.Type{1: ptx.U8, 2: ptx.U16, 4: ptx.U32}[bytes]
}
