package native

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// A run that is a whole basic block that branches to itself, and that writes no memory,
// has a body with a loop: one tile after another executes all of its turns, as long as
// all of its lanes continue, with the values that turns pass on in vector registers.
// Cases that it does not support it leaves to the bodies before it, in which the tile
// executes one more turn; the branch of the lanes is then found as after any run.

// Loop describes when lanes execute another turn.
type Loop struct{ Again ir.Pred }

// maxTurns limits what a call executes for all tiles, in instructions of tiles: about
// 100 µs.
const maxTurns = 128 * MaxRun

// turnsInMemory limits the turns of a tile that reads device memory, where the next tile
// often reads the same cache lines: those that one tile has read in that many turns are
// still in the L1 cache, even if all of them map to one set.
const turnsInMemory = 8

// turnsFor returns how many turns each of the tiles may execute.
func turnsFor(insts, tiles int, memory bool) uint64 {
	n := max(1, maxTurns/max(1, insts*tiles))
	if memory {
		n = min(n, turnsInMemory)
	}
	return uint64(n)
}

// keepable has the numbers of vectors of a loop that get a register of their own: the
// first is tried first, and a smaller one if an instruction needs too many other
// registers.
var keepable = []int{7, 4, 0}

// loopable reports whether instructions can be turns of a loop: they write no memory,
// and read none that is polled.
func loopable(insts []ir.Inst) bool {
	return !slices.ContainsFunc(insts, func(in ir.Inst) bool {
		switch o := in.Op.(type) {
		case *ir.Store, *ir.Atomic:
			return true
		case *ir.CopyWord:
			return o.To.Reg == ir.None
		case *ir.Load:
			return o.Strong
		}
		return false
	})
}

// kept is a vector with a register of its own.
type kept struct {
	in   id
	home place
	reg  amd64.Reg
	next id // the value in the next turn; in if it does not change
}

// cycle is the state of a body with a loop.
type cycle struct {
	again ir.Pred
	loose map[place]bool // values that turns pass on with any NaN
	ins   map[id]place   // values that a turn begins with
	exact bool           // they are only read by instructions that accept any NaN
	kept  []kept
	top   amd64.Label
	bail  amd64.Label

	insts []ir.Inst
	walks []*group // whose addresses change from turn to turn by a step (walk.go)
	terms []ir.Ref // that steps are computed from
	first *body    // executed before the first turn, or nil
	fail  amd64.Label
}

// looping makes a builder that of a body with a loop.
func looping(l *cycle) func(*builder) { return func(b *builder) { b.cycle = l } }

// enters records a vector that a turn begins with.
func (l *cycle) enters(b *builder, p place, v id) {
	if l.loose[p] {
		b.loose[v], l.ins[v] = true, p
	}
}

// settles records that an instruction needs the NaN of PTX: the first turn may begin
// with bits that are not the result of arithmetic, so such a vector is passed on with
// that NaN.
func (l *cycle) settles(v id) {
	if p, ok := l.ins[v]; ok {
		delete(l.loose, p)
		l.exact = false
	}
}

// buildLoop builds the body. The first attempt determines which of the vectors that
// turns pass on may have any NaN, and the later ones make use of it where the result is
// the same.
func buildLoop(insts []ir.Inst, o Options, options ...func(*builder)) (made *body, err error) {
	o.Masked = false
	options = append(options, quick)
	l := &cycle{again: o.Loop.Again, insts: insts, loose: map[place]bool{}, ins: map[id]place{}}
	b := collect(insts, &o, append(options, looping(l))...)
	for _, r := range b.dirty {
		for _, h := range b.halvesOf(r) {
			if b.loose[h.v] {
				l.loose[h.to] = true
			}
		}
	}
	for l.exact = false; !l.exact; {
		l.collectLoop(insts, &o, 0, options)
	}
	for _, n := range keepable {
		if made, err = l.collectLoop(insts, &o, n, options).allocate(&o); err == nil {
			break
		}
	}
	if err == nil && len(l.walks) > 0 {
		l.first, err = l.entry(made.builder, &o)
	}
	return made, err
}

// collectLoop collects the body with at most keep vectors in registers of their own.
func (l *cycle) collectLoop(insts []ir.Inst, o *Options, keep int, options []func(*builder)) *builder {
	l.exact, l.ins, l.kept, l.walks, l.terms = true, map[id]place{}, nil, nil, nil
	b := collect(insts, o, append(options, looping(l))...)
	b.finishLoop(len(insts), keep, o)
	return b
}

// halvesOf returns the current vectors of a register of the program, and their places.
func (b *builder) halvesOf(r ir.Ref) []result {
	v, n := b.current[r], uint64(r.Slot)
	switch r.Class {
	case ir.Class32:
		return []result{{place{kind: file32, n: n}, v.lo}}
	case ir.Class64:
		return []result{{place{kind: file64, n: n}, v.lo}, {place{kind: file64, n: n, half: 1}, v.hi}}
	}
	return []result{{place{kind: filePred, n: n}, v.lo}}
}

// finishLoop ends the body: what the next turn reads is stored where it reads it, and
// after the last turn the live registers are stored to the register files.
func (b *builder) finishLoop(insts, keep int, o *Options) {
	l := b.cycle
	again := b.pred(l.again)
	next := map[place]id{}
	for _, r := range b.dirty {
		for _, h := range b.halvesOf(r) {
			next[h.to] = h.v
			if !l.loose[h.to] {
				next[h.to] = b.settled(h.v)
			}
		}
	}
	roots := []id{again}
	for _, r := range b.dirty {
		for _, h := range b.halvesOf(r) {
			if _, read := b.loaded[h.to]; read || o.Live == nil || o.Live(insts, r) {
				roots = append(roots, h.v, next[h.to])
			}
		}
	}
	b.keepSome(next, keep, b.needed(roots))
	var ins []id
	for _, k := range l.kept {
		ins = append(ins, k.in)
	}
	b.add(regalloc.Inst{Uses: ins}, 0, func(*amd64.Assembler, regs) {}) // they are live until here
	isKept := map[place]bool{}
	for _, k := range l.kept {
		isKept[k.home] = true
		if k.next != k.in {
			b.add(regalloc.Inst{Uses: []id{k.next}}, 0, func(a *amd64.Assembler, r regs) {
				a.Emit(amd64.VMOVDQA, amd64.Y(k.reg), amd64.Y(r.use[0]))
			})
		}
	}
	for _, r := range b.dirty {
		for _, h := range b.halvesOf(r) {
			if _, read := b.loaded[h.to]; read && !isKept[h.to] {
				b.keep(result{h.to, b.settled(h.v)})
			}
		}
	}
	b.add(regalloc.Inst{Uses: []id{again}}, 0, func(a *amd64.Assembler, r regs) {
		done := a.Label()
		a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), amd64.Y(r.use[0]))
		a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(0xff))
		a.JumpIf(amd64.CondNE, done)
		a.Emit(amd64.SUB, amd64.Mem(regContext, turnsOffset).Size(8), amd64.Imm(1))
		if len(l.walks) == 0 {
			a.JumpIf(amd64.CondNE, l.top)
		} else {
			a.JumpIf(amd64.CondE, done)
			l.advance(a)
			a.Jump(l.top)
		}
		a.Bind(done)
	})
	b.left = len(b.code.Insts)
	for _, r := range b.pending(insts, o) {
		b.keep(r)
	}
	b.prune()
}

// keepSome assigns registers of their own to the vectors that turns read most often, in
// needed instructions.
func (b *builder) keepSome(next map[place]id, most int, needed []bool) {
	uses := map[id]int{}
	for i, in := range b.code.Insts {
		if !needed[i] {
			continue
		}
		for _, u := range in.Uses {
			uses[u]++
		}
	}
	var list []kept
	for p, v := range b.loaded {
		if p.kind == active {
			continue
		}
		k := kept{in: v, home: p, next: v}
		if n, ok := next[p]; ok {
			k.next = n
			uses[v] += 2 // it is stored too
		}
		if uses[v] > 0 {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(x, y kept) int {
		if d := uses[y.in] - uses[x.in]; d != 0 {
			return d
		}
		return int(x.in) - int(y.in)
	})
	free := b.code.Registers[0]
	for _, k := range list[:min(len(list), most)] {
		r := free[len(free)-1]
		free = free[:len(free)-1]
		b.code.Registers = append(b.code.Registers, []regalloc.Reg{r})
		b.code.Values[k.in].Class = regalloc.Class(len(b.code.Registers) - 1)
		k.reg = amd64.Reg(r)
		b.cycle.kept = append(b.cycle.kept, k)
	}
	b.code.Registers[0] = free
}

// writeLoop writes the body. Kept vectors are loaded once, and stored where a turn
// falls back to the general body.
func (b *body) writeLoop(a *amd64.Assembler, next amd64.Label) {
	l := b.cycle
	general := b.general
	l.top, l.bail = a.Label(), a.Label()
	b.general, l.fail = l.bail, general
	if l.first != nil {
		l.first.write(a)
	}
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, limitOffset))
	a.Emit(amd64.MOV, amd64.Mem(regContext, turnsOffset), amd64.Q(amd64.RAX))
	for _, k := range l.kept {
		b.layout.load(a, k.reg, k.home)
	}
	a.Bind(l.top)
	for i := range b.steps {
		if s := &b.steps[i]; s.Kind != regalloc.Load || s.Class == 0 {
			b.step(a, s)
		}
	}
	a.Jump(next)
	a.Bind(l.bail)
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, limitOffset))
	a.Emit(amd64.CMP, amd64.Q(amd64.RAX), amd64.Mem(regContext, turnsOffset))
	a.JumpIf(amd64.CondE, general) // nothing has changed in the first turn
	for _, k := range l.kept {
		if k.next != k.in {
			b.storeKept(a, &k)
		}
	}
	a.Jump(general)
}

// storeKept stores a kept vector to the place where the general body reads it.
func (b *body) storeKept(a *amd64.Assembler, k *kept) {
	r := amd64.Y(k.reg)
	t := amd64.Y(amd64.Reg(b.code.Registers[0][0])) // only kept vectors are live here
	if b.cycle.loose[k.home] {
		a.Emit(amd64.VCMPPS, t, r, r, amd64.Imm(cmpUnordered))
		a.Emit(amd64.VBLENDVPS, r, r, amd64.At(a.Broadcast64(nan32<<32|nan32)), t)
	}
	b.layout.store(a, k.home, k.reg)
}

// allocate assigns registers to the values of a body.
func (b *builder) allocate(o *Options) (*body, error) {
	if b.err != nil {
		return nil, fmt.Errorf("compile run: %w", b.err)
	}
	b.code.FirstFree = len(b.places)
	steps, spills, err := regalloc.Allocate(&b.code)
	if err != nil {
		return nil, fmt.Errorf("compile run: %w", err)
	}
	if spills > maxSpills {
		return nil, fmt.Errorf("compile run: %d vectors without a register, the most is %d", spills, maxSpills)
	}
	for _, p := range b.places {
		if b.layout.offset(p) > maxOffset {
			return nil, fmt.Errorf("compile run: register %d of %d lanes is too far away", p.n, o.Lanes)
		}
	}
	return &body{b, steps}, nil
}
