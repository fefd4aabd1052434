package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// result is a vector that is stored to a register file.
type result struct {
	to place
	v  id
}

// finish stores the live registers, for the active lanes, each vector as soon as the
// old one is not needed.
func (b *builder) finish(inst int, o *Options) { b.insert(b.pending(inst, o)) }

// flushResults stores the live registers before an instruction that may leave.
func (b *builder) flushResults(inst int, o *Options) {
	for _, r := range b.pending(inst, o) {
		b.keep(r)
	}
	b.left = len(b.code.Insts)
}

// keep adds the store of a result.
func (b *builder) keep(r result) {
	b.add(regalloc.Inst{Uses: []id{r.v}}, 0, func(a *amd64.Assembler, x regs) { b.layout.store(a, r.to, x.use[0]) })
}

// pending returns the results that are live at an instruction and not yet in the files.
func (b *builder) pending(inst int, o *Options) (list []result) {
	for _, r := range b.dirty {
		if o.Live != nil && !o.Live(inst, r) {
			continue
		}
		v, to := b.settle(b.current[r]), b.outside(r)
		if o.Masked {
			v = b.choose(to, v, b.in(place{kind: active}))
		}
		list = append(list, result{b.home(to.lo), v.lo})
		if r.Class == ir.Class64 {
			list = append(list, result{b.home(to.hi), v.hi})
		}
	}
	b.dirty = b.dirty[:0]
	return list
}

// home returns the place of a vector that has one.
func (b *builder) home(v id) place { return b.places[b.code.Values[v].Slot] }

// copied copies a vector that is in a file, so that the copy is not changed by a store
// to the register.
func (b *builder) copied(v id) id {
	if !b.code.Values[v].In {
		return v
	}
	own := b.emit(func(a *amd64.Assembler, r regs) {
		if r.def[0] != r.use[0] {
			a.Emit(amd64.VMOVDQA, amd64.Y(r.def[0]), amd64.Y(r.use[0]))
		}
	}, v)
	if b.loose[v] {
		b.loose[own] = true
	}
	return own
}

// insert adds the stores, each as soon as its vector is computed and the old one is not
// read any more.
func (b *builder) insert(list []result) {
	used, defined := map[id]int{}, map[id]int{}
	for i, in := range b.code.Insts {
		for _, v := range in.Uses {
			used[v] = i
		}
		for _, v := range in.Defs {
			defined[v] = i
		}
	}
	after := map[int][]result{}
	for _, r := range list {
		at := max(defined[r.v], b.left)
		if i, ok := used[b.in(r.to)]; ok {
			at = max(at, i)
		}
		after[at] = append(after[at], r)
	}
	insts, emits, pure := b.code.Insts, b.emits, b.pure
	b.code.Insts, b.emits, b.pure = nil, nil, nil
	for i := range insts {
		b.code.Insts, b.emits, b.pure = append(b.code.Insts, insts[i]), append(b.emits, emits[i]), append(b.pure, pure[i])
		for _, r := range after[i] {
			b.keep(r)
		}
	}
}
