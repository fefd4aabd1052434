package oracle

import (
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// vmad evaluates vmad as its pseudocode in the PTX ISA does, with integers of any size.
func vmad(in *ptx.Inst, types []ptx.Type, v []uint64) uint64 {
	negated := func(i int) bool { return in.Args[i+1].Negated }
	var part [2]*big.Int
	for i := range part {
		bytes, at := selected(in.Args[i+1].Parts())
		part[i] = integer(v[i]>>(8*at), sized(types[i+1], bytes))
	}
	signed := types[1].Signed() || types[2].Signed() || negated(0) != negated(1) || negated(2)
	sum := new(big.Int).Mul(part[0], part[1])
	c, more := truncate(v[2], 4), int64(0)
	switch {
	case in.Has("po"):
		more = 1
	case negated(0) != negated(1):
		sum.Not(sum)
		more = 1
	case negated(2):
		c, more = truncate(^c, 4), 1
	}
	final := map[bool]ptx.Type{true: ptx.S32, false: ptx.U32}[signed]
	sum.Add(sum, integer(c, final))
	sum.Add(sum, big.NewInt(more))
	switch {
	case in.Has("shr7"):
		sum.Rsh(sum, 7)
	case in.Has("shr15"):
		sum.Rsh(sum, 15)
	}
	if in.Has("sat") {
		lo, hi := limits(final)
		sum = clamp(sum, lo, hi)
	}
	return wrap(sum, 32)
}
