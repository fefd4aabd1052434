package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// result is a vector that goes to a register file.
type result struct {
	to place
	v  id
}

// finish stores what is live, in the lanes that take part.
func (b *builder) finish(o *Options) {
	var list []result
	for _, r := range b.order {
		if o.Live != nil && !o.Live(r) {
			continue
		}
		v := b.settle(b.current[r])
		if o.Masked {
			v = b.choose(b.outside(r), v, b.in(place{kind: active}))
		}
		to := b.outside(r)
		list = append(list, result{b.places[b.code.Values[to.lo].Slot], b.copied(v.lo)})
		if r.Class == ir.Class64 {
			list = append(list, result{b.places[b.code.Values[to.hi].Slot], b.copied(v.hi)})
		}
	}
	b.insert(list)
}

// copied makes a vector that is in a file one of its own, as another register may
// have been stored there when it is.
func (b *builder) copied(v id) id {
	if !b.code.Values[v].In {
		return v
	}
	return b.op1(amd64.VMOVDQA, v)
}

// insert adds the stores, each as soon as there is its vector and nothing reads
// the old one any more.
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
		at := defined[r.v]
		if i, ok := used[b.in(r.to)]; ok {
			at = max(at, i)
		}
		after[at] = append(after[at], r)
	}
	insts, emits := b.code.Insts, b.emits
	b.code.Insts, b.emits = nil, nil
	for i := range insts {
		b.code.Insts, b.emits = append(b.code.Insts, insts[i]), append(b.emits, emits[i])
		for _, r := range after[i] {
			b.add(regalloc.Inst{Uses: []id{r.v}}, 0, func(a *amd64.Assembler, x regs) { b.layout.store(a, r.to, x.use[0]) })
		}
	}
}
