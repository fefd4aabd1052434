package exec

import (
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// Lanes synchronize at an instruction with .sync when every live lane that the member
// mask names has reached an instruction with the same qualifiers and the same mask (PTX
// ISA: bar.warp.sync, shfl.sync, vote.sync, match.sync, redux.sync). Lanes of one warp
// that have different masks synchronize separately, as the tiles of a warp do, and the
// lanes of one mask may be at different instructions. Lanes whose mask is not complete
// keep waiting.

// warpOp is an instruction that exchanges values between the lanes of a warp.
type warpOp struct {
	*ir.Exchange
	source  pred
	uniform bool // all lanes receive the same 32-bit result
	// combine computes the results of the lanes from their sources; nil for a barrier.
	combine func(x *exchange)
	// whole is set instead for an instruction that a whole warp executes together
	// (.aligned). It may write registers of lanes that have ended.
	whole   whole
	fixed   *fixedShuffle // of a shuffle whose source lanes are constants, or nil
	do      ir.Op         // of whole
	product *simd.Product // of whole, or nil
	keep    simd.Keep     // where its matrices are
	// hasA and hasB are how many instructions before, in a chain, its matrices were
	// converted, or 0.
	hasA, hasB int
	// next is the instruction after one with whole, if it has whole too and nothing is
	// between them, or nil; nextAt is its block.
	next   *warpOp
	nextAt int
}

// exchange is one synchronization: the sources of the lanes and their results. Elements
// of lanes that do not take part are undefined.
type exchange struct {
	lanes uint32
	yes   uint32 // source predicates
	src   [3][]uint32
	wide  []uint64
	all   uint32 // the result if it is uniform
	d     [ir.WarpSize]uint32
	p     uint32
	// Buffers for sources from several instructions.
	room     [3][ir.WarpSize]uint32
	wideRoom [ir.WarpSize]uint64
}

// lockstep returns the step of an instruction without .sync, in which the active lanes
// take part.
func (o *warpOp) lockstep() step {
	return masked(o.exchange)
}

// sync is the syncFunc of an instruction with .sync. It may also execute the instructions
// after it that need nothing but the same lanes, and move the group to the last of them.
func (o *warpOp) sync(m *machine, g *group) (bool, error) {
	if g.passed {
		g.passed = false
		return true, nil
	}
	if !o.complete(m, g) {
		return o.gather(m, g)
	}
	g.state = runnable
	if o.next != nil && m.shadow == nil {
		return true, o.exchangeChain(m, g)
	}
	return true, o.exchange(m, g.act[:m.warps])
}

// complete reports whether the active lanes of each warp have one mask, which names
// them and no other live lane. This is the most frequent case.
func (o *warpOp) complete(m *machine, g *group) bool {
	if o.Constant {
		for w, a := range g.act[:m.warps] {
			if a != 0 && o.Mask&m.live[w] != a {
				return false
			}
		}
		return true
	}
	masks := m.v32(o.Members.Slot, 0, m.warps)
	for w, a := range g.act[:m.warps] {
		if a == 0 {
			continue
		}
		v := masks[w*ir.WarpSize:][:ir.WarpSize]
		mask := v[bits.TrailingZeros32(a)]
		if mask&m.live[w] != a || having(v, a, mask) != a {
			return false
		}
	}
	return true
}

// party is the lanes of one warp that a group contributes to an exchange.
type party struct {
	g     *group
	o     *warpOp // at which its lanes wait
	lanes uint32
}

// released is a waiting group whose lanes have synchronized with those of another.
type released struct {
	g     *group
	lanes [maxWarps]uint32
}

// gather synchronizes every set of lanes that is complete. The group keeps these lanes;
// the others stay at the instruction, in a group that waits.
func (o *warpOp) gather(m *machine, g *group) (bool, error) {
	masks := m.v32(o.Members.Slot, 0, m.warps)
	var stay [maxWarps]uint32
	var list []released
	some, all := false, true
	for w := range m.warps {
		v := masks[w*ir.WarpSize:][:ir.WarpSize]
		for rest := g.act[w]; rest != 0; {
			mask := v[bits.TrailingZeros32(rest)]
			here := having(v, rest, mask)
			rest &^= here
			if here&^mask != 0 {
				return false, fmt.Errorf("%w: member mask %#x of lanes %#x of warp %d, want a mask that includes them", abi.ErrLaunchFailed, mask, here&^mask, w)
			}
			missing := mask & m.live[w] &^ here
			if missing == 0 {
				if err := o.meet(m, w, here); err != nil {
					return false, err
				}
			} else if parties := o.waitingParties(m, w, mask, missing); parties != nil {
				m.meetAmong(w, append(parties, party{g, o, here}))
				list = addReleased(list, w, parties)
			} else {
				stay[w] |= here
				all = false
				continue
			}
			some = true
		}
	}
	for i := range list {
		m.resumeLanes(&list[i])
	}
	switch {
	case !some:
		g.state = atWarp
		return false, nil
	case !all:
		m.split(g, &stay).state = atWarp
	}
	g.state = runnable
	return true, nil
}

// waitingParties returns the missing lanes as parties of groups that wait with this
// mask at an instruction of this kind, or nil if some are not waiting.
func (o *warpOp) waitingParties(m *machine, w int, mask, missing uint32) (parties []party) {
	for _, h := range m.groups {
		if h.state != atWarp || h.act[w]&missing == 0 {
			continue
		}
		other := m.p.Blocks[h.pc].warp
		if other.Kind != o.Kind {
			return nil
		}
		there := having(m.v32(other.Members.Slot, w, w+1), h.act[w]&missing, mask)
		if there != 0 {
			parties = append(parties, party{h, other, there})
			missing &^= there
		}
	}
	if missing != 0 {
		return nil
	}
	return parties
}

// addReleased adds the lanes of some parties, which have synchronized, to the list.
func addReleased(list []released, w int, parties []party) []released {
next:
	for _, p := range parties {
		for i := range list {
			if list[i].g == p.g {
				list[i].lanes[w] |= p.lanes
				continue next
			}
		}
		list = append(list, released{g: p.g})
		list[len(list)-1].lanes[w] = p.lanes
	}
	return list
}

// resumeLanes lets the released lanes of a waiting group continue.
func (m *machine) resumeLanes(f *released) {
	g := f.g
	for w := range m.warps {
		if g.act[w]&^f.lanes[w] != 0 {
			g = m.split(f.g, &f.lanes)
			break
		}
	}
	g.state, g.passed = runnable, true
}

// missing returns the error of a group that waits while no other group can run: the
// kernel would hang.
func (o *warpOp) missing(m *machine, g *group) error {
	for w := range m.warps {
		for a := g.act[w]; a != 0; a &= a - 1 {
			lane := bits.TrailingZeros32(a)
			mask := m.v32(o.Members.Slot, w, w+1)[lane]
			if gone := mask & m.live[w] &^ g.act[w]; gone != 0 {
				return fmt.Errorf("%w: deadlock: lane %d of warp %d waits with member mask %#x for lanes %#x, which wait at another instruction", abi.ErrLaunchFailed, lane, w, mask, gone)
			}
		}
	}
	return fmt.Errorf("%w: deadlock: lanes of a warp wait for each other with different member masks", abi.ErrLaunchFailed)
}

// exchange synchronizes the lanes of each warp.
func (o *warpOp) exchange(m *machine, act []uint32) error {
	for w, a := range act {
		if a != 0 {
			if err := o.meet(m, w, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// meet synchronizes lanes of one warp that are at this instruction.
func (o *warpOp) meet(m *machine, w int, lanes uint32) error {
	if o.whole != nil {
		return o.whole(m, w, lanes)
	}
	if o.combine == nil {
		return nil
	}
	if o.fixed != nil && lanes == ^uint32(0) {
		o.shuffleWhole(m, w)
		return nil
	}
	x := &m.meet
	x.lanes = lanes
	o.readSources(m, w, x)
	o.combine(x)
	o.writeResults(m, w, lanes, x)
	return nil
}

// meetAmong synchronizes lanes of one warp that may be at several instructions.
func (m *machine) meetAmong(w int, parties []party) {
	o, x := parties[0].o, &m.meet
	if o.combine == nil {
		return
	}
	x.lanes = 0
	yes := uint32(0)
	for _, p := range parties {
		p.o.readSources(m, w, x)
		x.lanes |= p.lanes
		yes |= x.yes & p.lanes
		for i := range p.o.S {
			copyLanes(x.room[i][:], x.src[i], p.lanes)
		}
		if p.o.Wide.Class == ir.Class64 {
			copyLanes(x.wideRoom[:], x.wide, p.lanes)
		}
	}
	x.yes, x.wide = yes, x.wideRoom[:]
	for i := range x.src {
		x.src[i] = x.room[i][:]
	}
	o.combine(x)
	for _, p := range parties {
		p.o.writeResults(m, w, p.lanes, x)
	}
}

func copyLanes[T any](d, s []T, lanes uint32) {
	for ; lanes != 0; lanes &= lanes - 1 {
		l := bits.TrailingZeros32(lanes)
		d[l] = s[l]
	}
}

// readSources sets the sources of a warp's lanes. Lanes that do not take part may have
// set bits in yes.
func (o *warpOp) readSources(m *machine, w int, x *exchange) {
	for i, s := range o.S {
		x.src[i] = m.v32(s.Slot, w, w+1)
	}
	if o.Wide.Class == ir.Class64 {
		x.wide = m.v64(o.Wide.Slot, w, w+1)
	}
	if o.P != nil {
		x.yes = m.pred(o.source.slot, w, w+1)[0] ^ o.source.not
	}
}

// writeResults writes the results of some lanes.
func (o *warpOp) writeResults(m *machine, w int, lanes uint32, x *exchange) {
	if o.D.Class == ir.Class32 {
		out := m.v32(o.D.Slot, w, w+1)
		switch {
		case o.uniform && lanes == ^uint32(0):
			fill(out, x.all)
		case lanes == ^uint32(0):
			copy(out, x.d[:])
		default:
			if o.uniform {
				fill(x.d[:], x.all)
			}
			copyLanes(out, x.d[:], lanes)
		}
	}
	if o.OK.Class == ir.ClassPred {
		p := m.pred(o.OK.Slot, w, w+1)
		p[0] = p[0]&^lanes | x.p&lanes
	}
}
