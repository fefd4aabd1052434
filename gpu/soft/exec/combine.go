package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// What the instructions of a warp compute (PTX ISA, "Parallel Synchronization").

// Shuffle gives each lane the first source of another, which its mode, "up",
// "down", "bfly" or "idx", the second and the third source name (shfl). The
// third packs the clamp and the segment mask. A lane that does not take part
// has no defined value in PTX; here the lane that asks keeps its own.
func (o *WarpOp) Shuffle(mode string) {
	o.combine = func(x *exchange) {
		a, bs, cs := x.src[0][:WarpSize], x.src[1][:WarpSize], x.src[2][:WarpSize]
		valid, partly := uint32(0), x.lanes != ^uint32(0)
		for l := range uint32(WarpSize) {
			from, ok := shuffleSource(mode, l, bs[l]&31, cs[l])
			if partly && x.lanes>>from&1 == 0 {
				from = l
			}
			x.d[l] = a[from]
			valid |= bitOf(ok) << l
		}
		x.p = valid
	}
}

func shuffleSource(mode string, lane, b, c uint32) (from uint32, ok bool) {
	clamp, seg := c&31, c>>8&31
	last := lane&seg | clamp&^seg
	first := lane & seg
	var j uint32
	switch mode {
	case "up":
		j = lane - b
		ok = int32(j) >= int32(last)
	case "down":
		j = lane + b
		ok = j <= last
	case "bfly":
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

// Ballot gives all lanes the lanes whose predicate holds.
func (o *WarpOp) Ballot(p Pred) {
	o.pred, o.voting, o.uniform = p, true, true
	o.combine = func(x *exchange) { x.all = x.yes & x.lanes }
}

// VoteAll gives all lanes whether all predicates hold.
func (o *WarpOp) VoteAll(p Pred) {
	o.pred, o.voting = p, true
	o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&^x.yes == 0) }
}

// VoteAny gives all lanes whether one of the predicates holds.
func (o *WarpOp) VoteAny(p Pred) {
	o.pred, o.voting = p, true
	o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&x.yes != 0) }
}

// VoteSame gives all lanes whether their predicates are the same.
func (o *WarpOp) VoteSame(p Pred) {
	o.pred, o.voting = p, true
	o.combine = func(x *exchange) { x.p = -bitOf(x.lanes&x.yes == 0 || x.lanes&^x.yes == 0) }
}

// alike gives the lanes that have the value of the lowest of them.
func (o *WarpOp) alike(x *exchange, lanes uint32) uint32 {
	if o.Wide.Class == Class64 {
		return having(x.wide, lanes, x.wide[bits.TrailingZeros32(lanes)])
	}
	return having(x.src[0], lanes, x.src[0][bits.TrailingZeros32(lanes)])
}

// MatchAll gives all lanes whether they have one value, and all of the lanes if so.
func (o *WarpOp) MatchAll() {
	o.uniform, o.combine = true, func(x *exchange) {
		x.p = -bitOf(o.alike(x, x.lanes) == x.lanes)
		x.all = x.lanes & x.p
	}
}

// MatchAny gives each lane the lanes that have its value.
func (o *WarpOp) MatchAny() {
	o.combine = func(x *exchange) {
		for rest := x.lanes; rest != 0; {
			same := o.alike(x, rest)
			rest &^= same
			for a := same; a != 0; a &= a - 1 {
				x.d[bits.TrailingZeros32(a)] = same
			}
		}
	}
}

// Reduce gives all lanes what an operation makes of all of their values.
func (o *WarpOp) Reduce(f ops.Update) {
	o.uniform = true
	o.combine = func(x *exchange) {
		acc := uint64(x.src[0][bits.TrailingZeros32(x.lanes)])
		for a := x.lanes & (x.lanes - 1); a != 0; a &= a - 1 {
			acc = uint64(uint32(f(acc, uint64(x.src[0][bits.TrailingZeros32(a)]), 0)))
		}
		x.all = uint32(acc)
	}
}
