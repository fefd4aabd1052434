package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The results of the instructions of a warp (PTX ISA, "Parallel Synchronization").

// newWarpOp returns the instruction of an exchange.
func newWarpOp(e *ir.Exchange) *warpOp {
	o := &warpOp{Exchange: e}
	if e.P != nil {
		o.source = predOf(*e.P)
	}
	switch e.What {
	case ir.ShuffleUp, ir.ShuffleDown, ir.ShuffleBfly, ir.ShuffleIdx:
		o.combine = o.shuffle
	case ir.Ballot:
		o.uniform, o.combine = true, func(x *exchange) { x.all = x.yes & x.lanes }
	case ir.VoteAll:
		o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&^x.yes == 0) }
	case ir.VoteAny:
		o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&x.yes != 0) }
	case ir.VoteSame:
		o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&x.yes == 0 || x.lanes&^x.yes == 0) }
	case ir.MatchAll:
		o.uniform, o.combine = true, o.matchAll
	case ir.MatchAny:
		o.combine = o.matchAny
	case ir.Elected:
		o.uniform, o.combine = true, func(x *exchange) {
			x.all, x.p = uint32(bits.TrailingZeros32(x.lanes)), x.lanes&-x.lanes
		}
	case ir.Reduced:
		o.uniform, o.combine = true, o.reduce
	}
	return o
}

// shuffle evaluates shfl. The value of a lane that does not take part is undefined in
// PTX; here the lane that reads it keeps its own value.
func (o *warpOp) shuffle(x *exchange) {
	a, bs, cs := x.src[0][:ir.WarpSize], x.src[1][:ir.WarpSize], x.src[2][:ir.WarpSize]
	valid, partly := uint32(0), x.lanes != ^uint32(0)
	for l := range uint32(ir.WarpSize) {
		from, ok := shuffleSource(o.What, l, bs[l]&31, cs[l])
		if partly && x.lanes>>from&1 == 0 {
			from = l
		}
		x.d[l] = a[from]
		valid |= bitOf(ok) << l
	}
	x.p = valid
}

func shuffleSource(mode ir.Exchanged, lane, b, c uint32) (from uint32, ok bool) {
	clamp, seg := c&31, c>>8&31
	last := lane&seg | clamp&^seg
	first := lane & seg
	var j uint32
	switch mode {
	case ir.ShuffleUp:
		j = lane - b
		ok = int32(j) >= int32(last)
	case ir.ShuffleDown:
		j = lane + b
		ok = j <= last
	case ir.ShuffleBfly:
		j = lane ^ b
		ok = j <= last
	default:
		j = first | b&^seg
		ok = j <= last
	}
	if !ok {
		j = lane
	}
	return j & 31, ok
}

// alike returns the lanes that have the same value as the lowest of them.
func (o *warpOp) alike(x *exchange, lanes uint32) uint32 {
	if o.Wide.Class == ir.Class64 {
		return having(x.wide, lanes, x.wide[bits.TrailingZeros32(lanes)])
	}
	return having(x.src[0], lanes, x.src[0][bits.TrailingZeros32(lanes)])
}

func (o *warpOp) matchAll(x *exchange) {
	x.p = -bitOf(o.alike(x, x.lanes) == x.lanes)
	x.all = x.lanes & x.p
}

func (o *warpOp) matchAny(x *exchange) {
	for rest := x.lanes; rest != 0; {
		same := o.alike(x, rest)
		rest &^= same
		for a := same; a != 0; a &= a - 1 {
			x.d[bits.TrailingZeros32(a)] = same
		}
	}
}

func (o *warpOp) reduce(x *exchange) {
	acc := uint64(x.src[0][bits.TrailingZeros32(x.lanes)])
	if o.Alone {
		acc = uint64(uint32(o.Reduce(acc, acc, 0)))
	}
	for a := x.lanes & (x.lanes - 1); a != 0; a &= a - 1 {
		acc = uint64(uint32(o.Reduce(acc, uint64(x.src[0][bits.TrailingZeros32(a)]), 0)))
	}
	x.all = uint32(acc)
}
