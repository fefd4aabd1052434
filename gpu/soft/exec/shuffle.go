package exec

import "github.com/basalt-gpu/basalt/gpu/soft/ir"

// fixedShuffle is a shuffle whose source lanes and segments are constants, as in scans
// and reductions: the lane that each one reads is known at compile time.
type fixedShuffle struct {
	from  [ir.WarpSize]uint8
	valid uint32
	moves []move // the same as copies of consecutive lanes, if these are few
}

// move is a copy of consecutive lanes to consecutive lanes.
type move struct{ to, from, lanes int }

// maxMoves is the number of moves up to which they are faster than copying lane by
// lane.
const maxMoves = 4

// fix prepares a shuffle whose operands, except for the values, are constants.
func (o *warpOp) fix(constants map[int]uint32) {
	if o.What < ir.ShuffleUp || o.What > ir.ShuffleIdx {
		return
	}
	b, known := constants[o.S[1].Slot]
	c, too := constants[o.S[2].Slot]
	if !known || !too {
		return
	}
	f := &fixedShuffle{}
	for l := range uint32(ir.WarpSize) {
		from, ok := shuffleSource(o.What, l, b&31, c)
		f.from[l] = uint8(from)
		f.valid |= bitOf(ok) << l
		if last := len(f.moves) - 1; l > 0 && from == uint32(f.from[l-1])+1 {
			f.moves[last].lanes++
		} else {
			f.moves = append(f.moves, move{int(l), int(from), 1})
		}
	}
	if len(f.moves) > maxMoves {
		f.moves = nil
	}
	o.fixed = f
}

// shuffleWhole executes a fixed shuffle of all lanes of a warp.
func (o *warpOp) shuffleWhole(m *machine, w int) {
	f := o.fixed
	if o.D.Class == ir.Class32 {
		v, d := (*[ir.WarpSize]uint32)(m.v32(o.S[0].Slot, w, w+1)), (*[ir.WarpSize]uint32)(m.v32(o.D.Slot, w, w+1))
		if v == d {
			own := *v
			v = &own
		}
		f.apply(d, v)
	}
	if o.OK.Class == ir.ClassPred {
		m.pred(o.OK.Slot, w, w+1)[0] = f.valid
	}
}

// apply copies the values of a warp from v to d, which must be different.
func (f *fixedShuffle) apply(d, v *[ir.WarpSize]uint32) {
	if f.moves == nil {
		for l, from := range &f.from {
			d[l] = v[from%ir.WarpSize]
		}
		return
	}
	for _, x := range f.moves {
		copy(d[x.to:x.to+x.lanes], v[x.from:x.from+x.lanes])
	}
}
