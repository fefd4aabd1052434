package native

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Removal of vector instructions whose results are not used: those that computed
// addresses of walks.

// needed reports for each instruction whether another one uses its results, or one of
// the roots is a result.
func (b *builder) needed(roots []id) []bool {
	used := map[id]bool{}
	for _, v := range roots {
		used[v] = true
		if s, ok := b.strict[v]; ok {
			used[s] = true
		}
	}
	list := make([]bool, len(b.code.Insts))
	for i := len(b.code.Insts) - 1; i >= 0; i-- {
		in := &b.code.Insts[i]
		list[i] = !b.pure[i] || slices.ContainsFunc(in.Defs, func(v id) bool { return used[v] })
		if list[i] {
			for _, v := range in.Uses {
				used[v] = true
			}
		}
	}
	return list
}

// prune removes instructions that are not needed.
func (b *builder) prune() {
	needed := b.needed(nil)
	var insts []regalloc.Inst
	var emits []emitFunc
	var pure []bool
	for i, in := range b.code.Insts {
		if needed[i] {
			insts, emits, pure = append(insts, in), append(emits, b.emits[i]), append(pure, b.pure[i])
		}
	}
	b.code.Insts, b.emits, b.pure = insts, emits, pure
}
