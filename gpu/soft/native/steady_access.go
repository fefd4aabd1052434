package native

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Accesses of steady blocks. Their lanes have one address, consecutive ones, or, where a
// block also stores, ones at any constant distance. Accesses whose addresses differ by
// constants are checked together, as one range.

// maxLeadSpan is the maximum distance of the addresses of accesses that are checked
// together.
const maxLeadSpan = 1 << 16

// steadyAccess is a load or a store of a steady block.
type steadyAccess struct {
	access
	step  int64
	store bool
	lead  *steadyAccess // the one that is checked together with it, or itself
	rel   int64         // the distance of its addresses from those of the lead

	// Of a lead:
	number    int
	low, high int64     // the least and the greatest rel
	from      scalar    // the first lane's address, without the offset
	pointer   amd64.Reg // has the tile's first address, or NoReg
	rels      []int64
}

// unit returns the number of bytes of a lane.
func (x *steadyAccess) unit() int64 { return int64(x.Size) * int64(x.N) }

// bytes returns the number of bytes that the lanes access, from the first lane's
// address on.
func (x *steadyAccess) bytes() int64 { return x.step*(ir.WarpSize-1) + x.unit() }

// distant reports whether there is memory between that of consecutive lanes.
func (x *steadyAccess) distant() bool { return x.step > x.unit() }

// steadyAccessOf returns an access of a form that steady blocks support.
func (r *region) steadyAccessOf(in *ir.Inst, a *ir.Access, kind accessKind) (x *steadyAccess, ok bool) {
	if a == nil || kind == others || in.Guard != nil || a.Strong || a.Space > ir.Shared || int64(a.Off) != int64(int32(a.Off)) ||
		a.Base.Class == ir.Class32 && a.Space != ir.Shared {
		return x, false
	}
	f := r.steady.of(a.Base)
	if f == nil || f.form != affine {
		return x, false
	}
	x = &steadyAccess{access: access{Access: a, of: nil}, step: f.step, store: kind == stores}
	switch {
	case f.step == 0:
		return x, kind == loads && a.N == 1
	case x.distant():
		return x, a.N == 1 && f.step%int64(a.Size) == 0 && (kind == loads || a.Size >= 4)
	case f.step != x.unit():
		return x, false
	case kind == stores:
		return x, a.Size >= 4 && x.transposed()
	}
	return x, x.transposed()
}

// add adds an access to the block, after those that precede it.
func (x *steadyBlock) add(s *steadyAccess) {
	x.accesses = append(x.accesses, s)
	for _, lead := range x.leads {
		if s.step == 0 || s.step != lead.step || s.Base != lead.Base || s.Space != lead.Space || s.unit() != lead.unit() {
			continue
		}
		rel := int64(s.Off - lead.Off)
		low, high := min(lead.low, rel), max(lead.high, rel)
		if rel%s.unit() == 0 && high-low <= maxLeadSpan {
			s.lead, s.rel, lead.low, lead.high = lead, rel, low, high
			lead.rels = append(lead.rels, rel)
			return
		}
	}
	s.lead, s.number, s.pointer, s.rels = s, len(x.leads), amd64.NoReg, []int64{0}
	x.leads = append(x.leads, s)
}

// assign assigns registers to the first leads.
func (x *steadyBlock) assign() {
	free := pointers
	for _, lead := range x.leads {
		if lead.step > 0 && len(free) > 0 {
			lead.pointer, free = free[0], free[1:]
		}
	}
}

// distant reports whether the block has an access that is distant.
func (x *steadyBlock) distant() bool {
	return slices.ContainsFunc(x.accesses, (*steadyAccess).distant)
}

// stores reports whether the block has a store. Without one it is one run, whose loads
// examine their addresses together as well, and load several words of a lane at once
// (quad.go).
func (x *steadyBlock) stores() bool {
	return slices.ContainsFunc(x.accesses, func(s *steadyAccess) bool { return s.store })
}

// pairs returns the number of pairs of eachPair.
func (x *steadyBlock) pairs() (n int) {
	x.eachPair(func(*steadyAccess, *steadyAccess) { n++ })
	return n
}

// eachPair calls f for each pair of a store and another access of the same kind of
// memory that may overlap.
func (x *steadyBlock) eachPair(f func(store, other *steadyAccess)) {
	for i, s := range x.accesses {
		for j, o := range x.accesses {
			if i != j && s.store && (!o.store || i < j) && (s.Space == ir.Shared) == (o.Space == ir.Shared) && !s.apart(o) {
				f(s, o)
			}
		}
	}
}

// apart reports whether it is known that no lane accesses what another lane does by the
// other access.
func (x *steadyAccess) apart(o *steadyAccess) bool {
	if x.lead != o.lead {
		return false
	}
	more := max(x.rel-o.rel, o.rel-x.rel)
	return more == 0 || more+x.unit() <= x.step || more >= x.bytes()
}

// find stores where in memory the accesses of a lead begin, and the value that all lanes
// load. It continues at slow unless all that the warp accesses is in the window.
func (x *steadyAccess) find(a *amd64.Assembler, slow amd64.Label) {
	switch {
	case x.from.constant:
		a.Emit(amd64.MOV, amd64.Q(offset), amd64.Imm(int64(x.from.n)))
	default:
		a.Emit(amd64.MOV, x.from.reg(offset), x.from.at)
	}
	if first := int64(x.Off) + x.low; first != 0 {
		a.Emit(amd64.ADD, amd64.Q(offset), amd64.Imm(first))
	}
	if x.Space > ir.Global {
		a.Emit(amd64.MOV, amd64.D(offset), amd64.D(offset))
	}
	x.inside(a, uint64(x.bytes()+x.high-x.low), slow, slow)
	a.Emit(amd64.MOV, amd64.Mem(regContext, pointOffset(x.number)), amd64.Q(offset))
	if x.step == x.unit() {
		x.prefetchAll(a)
	}
	if x.step == 0 {
		x.element(a, 0)
		a.Emit(amd64.MOV, amd64.Mem(regContext, valueOffset(x.number)), amd64.Q(amd64.RAX))
	}
}

// prefetchAll prefetches the memory ahead of the accesses of a lead, the first of which
// is at offset. What is ahead of several of them is prefetched once.
func (x *steadyAccess) prefetchAll(a *amd64.Assembler) {
	const line = 64
	rels := slices.Clone(x.rels)
	slices.Sort(rels)
	for i, rel := range rels {
		if i == 0 || rel-rels[i-1] >= line {
			x.prefetch(a, offset, rel-x.low, x.bytes())
		}
	}
}

// apartFrom continues at slow if a store overlaps another access, unless each lane
// accesses its own part.
func apartFrom(a *amd64.Assembler, s, o *steadyAccess, slow amd64.Label) {
	ok := a.Label()
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, pointOffset(o.lead.number)))
	a.Emit(amd64.SUB, amd64.Q(amd64.RAX), amd64.Mem(regContext, pointOffset(s.lead.number)))
	if more := o.begins() - s.begins(); more != 0 {
		a.Emit(amd64.ADD, amd64.Q(amd64.RAX), amd64.Imm(more))
	}
	if s.step == o.step {
		a.Emit(amd64.TEST, amd64.Q(amd64.RAX), amd64.Q(amd64.RAX))
		a.JumpIf(amd64.CondE, ok)
	}
	a.Emit(amd64.ADD, amd64.Q(amd64.RAX), amd64.Imm(o.bytes()-1))
	a.Emit(amd64.CMP, amd64.Q(amd64.RAX), amd64.Imm(o.bytes()+s.bytes()-1))
	a.JumpIf(amd64.CondB, slow)
	a.Bind(ok)
}

// begins returns the distance of the access from where those of its lead begin.
func (x *steadyAccess) begins() int64 { return x.rel - x.lead.low }

// nextAccess returns the next access of the block.
func (s *steadyReader) nextAccess() *steadyAccess {
	s.next++
	return s.block.accesses[s.next-1]
}

// row returns a register and a displacement, the address in memory of the tile's first
// element. The register may be scratch.
func (x *steadyAccess) row(a *amd64.Assembler, scratch amd64.Reg) (at amd64.Reg, rel int32) {
	lead := x.lead
	if lead.pointer != amd64.NoReg {
		return lead.pointer, int32(x.begins())
	}
	a.Emit(amd64.IMUL, amd64.Q(scratch), amd64.Q(warpLanes), amd64.Imm(x.step))
	a.Emit(amd64.ADD, amd64.Q(scratch), amd64.Mem(regContext, pointOffset(lead.number)))
	return scratch, int32(x.begins())
}

// steadyLoad adds a load of a block.
func (b *builder) steadyLoad(n int) []id {
	x := b.steady.nextAccess()
	temps := regalloc.Inst{Temps: []regalloc.Class{0, 0, 0}}
	switch {
	case x.step == 0:
		return b.add(regalloc.Inst{}, n, func(a *amd64.Assembler, r regs) {
			in := amd64.VPBROADCASTD
			if x.Size == 8 {
				in = amd64.VPBROADCASTQ
			}
			a.Emit(in, amd64.Y(r.def[0]), amd64.Mem(regContext, valueOffset(x.number)))
			if x.Size == 8 {
				a.Emit(amd64.VMOVDQA, amd64.Y(r.def[1]), amd64.Y(r.def[0]))
			}
		})
	case x.distant():
		return b.add(temps, n, func(a *amd64.Assembler, r regs) {
			at, rel := x.row(a, offset)
			x.collect(a, r, func(l int) amd64.Arg { return amd64.Mem(at, rel+int32(x.step)*int32(l)) })
		})
	case x.N == 1:
		return b.add(regalloc.Inst{}, n, func(a *amd64.Assembler, r regs) {
			at, rel := x.row(a, offset)
			x.at = at
			x.wide(a, r, rel)
		})
	}
	return b.add(temps, n, func(a *amd64.Assembler, r regs) {
		at, rel := x.row(a, offset)
		x.at = at
		x.gathered(a, r, rel)
	})
}

// steadyStore adds a store of a block.
func (b *builder) steadyStore(data []id) {
	x := b.steady.nextAccess()
	b.add(regalloc.Inst{Uses: data, Temps: []regalloc.Class{0, 0, 0}}, 0, func(a *amd64.Assembler, r regs) {
		at, rel := x.row(a, offset)
		switch {
		case x.distant():
			x.spreadStore(a, r, at, rel)
		case x.N == 1:
			for i, d := range r.use {
				a.Emit(amd64.VMOVDQU, amd64.Mem(at, rel+32*int32(i)), amd64.Y(d))
			}
		default:
			a.Emit(amd64.LEA, amd64.Q(offset), amd64.Mem(at, rel))
			x.scattered(a, r, r.use)
		}
	})
}

// spreadStore stores an element of 4 or 8 bytes for each lane.
func (x *steadyAccess) spreadStore(a *amd64.Assembler, r regs, at amd64.Reg, rel int32) {
	first, next := amd64.VMOVD, amd64.VPEXTRD
	if x.Size == 8 {
		first, next = amd64.VMOVQ, amd64.VPEXTRQ
	}
	half, lanes := r.temp[0], 16/int(x.Size)
	for l := range ir.Tile {
		v := r.use[l/(2*lanes)]
		if l/lanes%2 == 1 {
			if l%lanes == 0 {
				a.Emit(amd64.VEXTRACTI128, amd64.X(half), amd64.Y(v), amd64.Imm(1))
			}
			v = half
		}
		to := amd64.Mem(at, rel+int32(x.step)*int32(l))
		if l%lanes == 0 {
			a.Emit(first, to, amd64.X(v))
		} else {
			a.Emit(next, to, amd64.X(v), amd64.Imm(int64(l%lanes)))
		}
	}
}
