package exec

import "github.com/basalt-gpu/basalt/gpu/soft/ir"

// fixedShuffle is a shuffle whose lanes and segments are constants, as those of scans
// and reductions are: which lane each one asks is known beforehand.
type fixedShuffle struct {
	from  [ir.WarpSize]uint8
	valid uint32
}

// fix prepares a shuffle whose operands, but for the values, are constants.
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
	}
	o.fixed = f
}

// shuffleWhole is a fixed shuffle of all lanes of a warp.
func (o *warpOp) shuffleWhole(m *machine, w int) {
	f := o.fixed
	if o.D.Class == ir.Class32 {
		v := [ir.WarpSize]uint32(m.v32(o.S[0].Slot, w, w+1))
		d := (*[ir.WarpSize]uint32)(m.v32(o.D.Slot, w, w+1))
		for l, from := range &f.from {
			d[l] = v[from%ir.WarpSize]
		}
	}
	if o.OK.Class == ir.ClassPred {
		m.pred(o.OK.Slot, w, w+1)[0] = f.valid
	}
}
