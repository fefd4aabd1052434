package native

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Loads of four consecutive words for each lane, by four instructions: where lanes have
// separate addresses, the words are loaded together, lane by lane, and transposed. No
// instruction of a run of loads can change the later words before they are loaded.

// quad is four instructions that are combined to one load.
type quad struct {
	group *group
	insts [4]int
	words []id
}

// quadAt returns the loads of four consecutive words that start at an instruction.
func quadAt(insts []ir.Inst, at int) (q [4]int, ok bool) {
	first, ok := wordOf(&insts[at])
	if !ok {
		return q, false
	}
	n := 1
	q[0] = at
	for i := at; i < len(insts) && n < len(q); i++ {
		if x, ok := wordOf(&insts[i]); ok && i > at && x.Base == first.Base && x.Space == first.Space && x.Off == first.Off+4*uint64(n) {
			q[n] = i
			n++
		}
		if results, _ := insts[i].Op.Registers(); slices.Contains(results, first.Base) {
			break
		}
	}
	return q, n == len(q)
}

// wordOf returns the access of an instruction that loads a word.
func wordOf(in *ir.Inst) (*ir.Load, bool) {
	o, ok := in.Op.(*ir.Load)
	return o, ok && in.Guard == nil && o.Size == 4 && o.N == 1 && !o.Strong && o.Space != ir.Local && o.Space != ir.Param
}

// combined returns the word of a load that an earlier one of its quad has loaded. No
// instruction is added for it.
func (b *builder) combined(l groupedLoad, index int) (words []id, ok bool) {
	for _, q := range b.quads {
		if i := slices.Index(q.insts[:], index); i >= 0 && q.group == l.group {
			return q.words[i : i+1], true
		}
	}
	return nil, false
}

// together adds the load of a quad that starts at an instruction, and returns the first
// word.
func (b *builder) together(l groupedLoad, index int) (words []id, ok bool) {
	g := l.group
	if g.expect != inside || index >= len(b.insts) {
		return nil, false
	}
	insts, ok := quadAt(b.insts, index)
	last := int64(l.rel) + 12
	if !ok || max(g.high, last)-g.low > maxSpan {
		return nil, false
	}
	g.high = max(g.high, last)
	l.Access = &ir.Access{Space: l.Space, Base: l.Base, Off: l.Off, Size: 4, N: 4}
	q := &quad{group: g, insts: insts}
	q.words = b.add(regalloc.Inst{Temps: []regalloc.Class{0, 0, 0}}, 4, func(a *amd64.Assembler, r regs) { l.collectParked(a, r, l.rel-int32(g.low)) })
	b.quads = append(b.quads, q)
	return q.words[:1], true
}
