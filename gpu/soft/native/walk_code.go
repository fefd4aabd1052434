package native

import (
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// The code of walks: what is executed before the first turn, and between turns.

// entry builds the code that examines the walks before the first turn.
func (l *cycle) entry(b *builder, o *Options) (*body, error) {
	e := newBuilder()
	e.layout, e.segment, e.known = b.layout, b.segment, b.known
	checked := map[int]bool{}
	for i, r := range l.terms {
		e.emitTerm(l, e.read(r), i)
	}
	for _, g := range l.walks {
		e.current = map[ir.Ref]value{}
		next := 0
		widen := func(i int) {
			for ; next < len(g.walk.widens) && g.walk.widens[next].inst <= i; next++ {
				w := &g.walk.widens[next]
				if checked[w.inst] {
					continue
				}
				checked[w.inst] = true
				v := e.settle(e.read(w.r))
				e.add(regalloc.Inst{Uses: []id{v.lo}, Temps: []regalloc.Class{0, 0, 0}}, 0, func(a *amd64.Assembler, r regs) { l.straight(a, r, w) })
			}
		}
		slices.SortStableFunc(g.walk.widens, func(x, y widening) int { return x.inst - y.inst })
		for _, i := range g.walk.slice {
			widen(i)
			e.inst(&l.insts[i], i, o)
		}
		v := e.base(g.Access)
		e.add(regalloc.Inst{Uses: []id{v.lo, v.hi}, Temps: []regalloc.Class{0, 0, 0}}, 0, func(a *amd64.Assembler, r regs) { l.begin(a, r, g) })
	}
	return e.allocate(o)
}

// emitTerm stores the value that a register has in all lanes of the tile, as a number
// of 64 bits.
func (b *builder) emitTerm(l *cycle, v value, number int) {
	uses := []id{v.lo}
	if v.class == ir.Class64 {
		uses = append(uses, v.hi)
	}
	b.add(regalloc.Inst{Uses: uses, Temps: []regalloc.Class{0, 0}}, 0, func(a *amd64.Assembler, r regs) {
		if v.class == ir.Class64 {
			unless(a, r, 0, l.fail)
			a.Emit(amd64.VMOVQ, amd64.Q(amd64.RAX), amd64.X(r.use[0]))
		} else {
			t := amd64.Y(r.temp[0])
			a.Emit(amd64.VPBROADCASTD, t, amd64.X(r.use[0]))
			a.Emit(amd64.VPCMPEQD, t, t, amd64.Y(r.use[0]))
			a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), t)
			a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(0xff))
			a.JumpIf(amd64.CondNE, l.fail)
			a.Emit(amd64.VMOVD, amd64.D(amd64.RAX), amd64.X(r.use[0]))
			a.Emit(amd64.MOVSXD, amd64.Q(amd64.RAX), amd64.D(amd64.RAX))
		}
		a.Emit(amd64.MOV, amd64.Mem(regContext, termOffset(number)), amd64.Q(amd64.RAX))
	})
}

// number computes a step in RAX.
func (l *cycle) number(a *amd64.Assembler, s step) {
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Imm(s.k))
	for _, t := range s.terms {
		a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, termOffset(slices.Index(l.terms, t.r))))
		if t.times != 1 {
			a.Emit(amd64.IMUL, amd64.Q(offset), amd64.Q(offset), amd64.Imm(t.times))
		}
		a.Emit(amd64.ADD, amd64.Q(amd64.RAX), amd64.Q(offset))
	}
}

// straight checks that a number of 32 bits wraps around in no lane within the number of
// turns that the tile may take: it is enough to check the last turn.
func (l *cycle) straight(a *amd64.Assembler, r regs, w *widening) {
	more, lo, hi := amd64.Y(r.temp[0]), amd64.Y(r.temp[1]), amd64.Y(r.temp[2])
	extend := amd64.VPMOVZXDQ
	l.number(a, w.step)
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, limitOffset))
	a.Emit(amd64.SUB, amd64.Q(offset), amd64.Imm(1))
	a.Emit(amd64.IMUL, amd64.Q(amd64.RAX), amd64.Q(offset))
	if w.signed { // relative to the least number
		extend = amd64.VPMOVSXDQ
		a.Emit(amd64.SUB, amd64.Q(amd64.RAX), amd64.Imm(math.MinInt32))
	}
	a.Emit(amd64.VMOVQ, amd64.X(r.temp[0]), amd64.Q(amd64.RAX))
	a.Emit(amd64.VPBROADCASTQ, more, amd64.X(r.temp[0]))
	a.Emit(amd64.VEXTRACTI128, amd64.X(r.temp[2]), amd64.Y(r.use[0]), amd64.Imm(1))
	a.Emit(extend, lo, amd64.X(r.use[0]))
	a.Emit(extend, hi, amd64.X(r.temp[2]))
	a.Emit(amd64.VPADDQ, lo, lo, more)
	a.Emit(amd64.VPADDQ, hi, hi, more)
	a.Emit(amd64.VPOR, lo, lo, hi)
	a.Emit(amd64.VPSRLQ, lo, lo, amd64.Imm(32))
	a.Emit(amd64.VPTEST, lo, lo)
	a.JumpIf(amd64.CondNE, l.fail)
}

// begin examines the addresses of a walk and stores where it begins, its step, and the
// maximum offset of its pointer in the window.
func (l *cycle) begin(a *amd64.Assembler, r regs, g *group) {
	g.match(a, r, g.expect, l.fail)
	need := int64(g.Size)*int64(g.N) + g.high - g.low
	a.Emit(amd64.MOV, amd64.Q(room), amd64.Mem(regContext, g.window+windowSize))
	switch g.expect {
	case consecutive:
		need += 7 * int64(g.Size) * int64(g.N)
	case inside:
		g.relative(a, r)
	}
	a.Emit(amd64.SUB, amd64.Q(room), amd64.Imm(need))
	a.Emit(amd64.MOV, amd64.Mem(regContext, walkOffset(g.walkIndex)+walkMost), amd64.Q(room))
	l.number(a, g.walk.step)
	if align := g.Size * uint64(g.N); align > 1 {
		a.Emit(amd64.TEST, amd64.D(amd64.RAX), amd64.Imm(int64(align-1)))
		a.JumpIf(amd64.CondNE, l.fail)
	}
	a.Emit(amd64.MOV, amd64.Mem(regContext, walkOffset(g.walkIndex)+walkStep), amd64.Q(amd64.RAX))
}

// relative makes the parked addresses of the lanes relative to the lowest one, where
// the group's pointer begins. It subtracts the distance between the lanes from room.
func (g *group) relative(a *amd64.Assembler, r regs) {
	lowest, highest := amd64.RAX, offset
	at := func(lane int) amd64.Arg { return amd64.Mem(regContext, parkedOffset(g.number)+8*int32(lane)) }
	a.Emit(amd64.MOV, amd64.Q(lowest), at(0))
	a.Emit(amd64.MOV, amd64.Q(highest), amd64.Q(lowest))
	for n := 1; n < ir.Tile; n++ {
		a.Emit(amd64.MOV, amd64.Q(lane), at(n))
		a.Emit(amd64.CMP, amd64.Q(lane), amd64.Q(lowest))
		a.Emit(amd64.CMOV[amd64.CondB], amd64.Q(lowest), amd64.Q(lane))
		a.Emit(amd64.CMP, amd64.Q(lane), amd64.Q(highest))
		a.Emit(amd64.CMOV[amd64.CondA], amd64.Q(highest), amd64.Q(lane))
	}
	a.Emit(amd64.SUB, amd64.Q(highest), amd64.Q(lowest))
	a.Emit(amd64.SUB, amd64.Q(room), amd64.Q(highest))
	t, u := amd64.Y(r.temp[0]), amd64.Y(r.temp[1])
	a.Emit(amd64.VMOVQ, amd64.X(r.temp[0]), amd64.Q(lowest))
	a.Emit(amd64.VPBROADCASTQ, t, amd64.X(r.temp[0]))
	for half := range 2 {
		a.Emit(amd64.VMOVDQU, u, at(4*half))
		a.Emit(amd64.VPSUBQ, u, u, t)
		a.Emit(amd64.VMOVDQU, at(4*half), u)
	}
	if g.reg != amd64.NoReg {
		a.Emit(amd64.MOV, amd64.Q(g.reg), amd64.Q(lowest))
	} else {
		a.Emit(amd64.MOV, amd64.Mem(regContext, groupOffset(g.number)+groupData), amd64.Q(lowest))
	}
}

// advance moves the pointers of all walks by a turn. The turn is left where a pointer
// leaves its window.
func (l *cycle) advance(a *amd64.Assembler) {
	for _, g := range l.walks {
		at := walkOffset(g.walkIndex)
		if p := g.reg; p != amd64.NoReg {
			a.Emit(amd64.ADD, amd64.Q(p), amd64.Mem(regContext, at+walkStep))
			a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Q(p))
			if g.expect == consecutive {
				g.prefetch(a, p, 0, 1)
			}
		} else {
			a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, groupOffset(g.number)+groupData))
			a.Emit(amd64.ADD, amd64.Q(amd64.RAX), amd64.Mem(regContext, at+walkStep))
			a.Emit(amd64.MOV, amd64.Mem(regContext, groupOffset(g.number)+groupData), amd64.Q(amd64.RAX))
		}
		a.Emit(amd64.SUB, amd64.Q(amd64.RAX), amd64.Mem(regContext, g.window+windowData))
		a.Emit(amd64.CMP, amd64.Q(amd64.RAX), amd64.Mem(regContext, at+walkMost))
		a.JumpIf(amd64.CondA, l.bail)
	}
}
