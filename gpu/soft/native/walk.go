package native

import (
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Addresses in loops that change from turn to turn by one step, the same in all lanes.
// Their pattern in the tile is examined before the first turn only (walk_code.go): it
// does not change later, so a turn needs only a pointer and a step, and the
// instructions that only compute the addresses are omitted.
//
// It is also checked before the first turn that the step is the same in all lanes, and
// that no number of 32 bits that is widened on the way to the address wraps around.
// Where a check fails, the tile executes a turn in the bodies before this one.

// Limits of the search.
const (
	maxWalks = 16
	maxTerms = 8       // registers that the steps of a loop are computed from
	maxTimes = 1 << 12 // the maximum factor of one of them
	maxSlice = 32      // instructions that an address is computed by
)

// step is the change of a register from one turn to the next: k, and multiples of
// registers that the loop does not write. It counts modulo the register's width.
type step struct {
	k     int64
	terms []term
}

type term struct {
	r     ir.Ref // read as signed if it has 32 bits
	times int64
}

func (s step) plus(o step, times int64) step {
	sum := step{s.k + times*o.k, slices.Clone(s.terms)}
	for _, t := range o.terms {
		t.times *= times
		sum.terms = append(sum.terms, t)
	}
	return sum
}

// bounded reports whether no product of the step and a number less than maxTurns
// overflows 64 bits.
func (s step) bounded() bool {
	return len(s.terms) <= 2 && max(s.k, -s.k) <= 1<<32*maxTimes &&
		!slices.ContainsFunc(s.terms, func(t term) bool { return max(t.times, -t.times) > maxTimes })
}

// widening is a number of 32 bits that is widened to 64 in the computation of an
// address.
type widening struct {
	inst   int // of the slice
	r      ir.Ref
	signed bool
	step   step
}

// walk describes how the addresses of a group change from turn to turn.
type walk struct {
	step   step
	slice  []int // the instructions of a turn that compute them, in order
	widens []widening
}

// turn has the instructions of a loop in which walks are searched.
type turn struct {
	insts []ir.Inst
	known func(r ir.Ref) (uint64, bool)
}

// walkOf returns how the base address of an instruction changes from turn to turn, or
// nil.
func (t turn) walkOf(base ir.Ref, at int) *walk {
	w := &walk{}
	var ok bool
	if w.step, ok = t.change(w, base, at); !ok || len(w.slice) > maxSlice {
		return nil
	}
	slices.Sort(w.slice)
	w.slice = slices.Compact(w.slice)
	return w
}

// def returns the last instruction before another one that writes a register, or -1.
func (t turn) def(r ir.Ref, before int) int {
	for i := before - 1; i >= 0; i-- {
		if results, _ := t.insts[i].Op.Registers(); slices.Contains(results, r) {
			return i
		}
	}
	return -1
}

// constant returns the number that a register has in all lanes, sign-extended.
func (t turn) constant(r ir.Ref) (int64, bool) {
	if t.known == nil {
		return 0, false
	}
	n, ok := t.known(r)
	if r.Class == ir.Class32 {
		return int64(int32(n)), ok
	}
	return int64(n), ok && r.Class == ir.Class64
}

// arith returns instruction i if it computes in all lanes, or nil.
func (t turn) arith(i int) *ir.Arith {
	if o, ok := t.insts[i].Op.(*ir.Arith); ok && t.insts[i].Guard == nil && o.D.Class != ir.ClassNone {
		return o
	}
	return nil
}

// change returns by how much the value of a register that an instruction reads changes
// from turn to turn.
func (t turn) change(w *walk, r ir.Ref, at int) (s step, ok bool) {
	if _, ok := t.constant(r); ok {
		return s, true
	}
	d := t.def(r, at)
	if d < 0 {
		if t.def(r, len(t.insts)) < 0 {
			return s, true
		}
		s, ok = t.since(r, r, len(t.insts))
		return s, ok && s.bounded()
	}
	o := t.arith(d)
	if o == nil || len(w.slice) > maxSlice {
		return s, false
	}
	w.slice = append(w.slice, d)
	s, ok = t.changeOf(w, o, d)
	return s, ok && s.bounded()
}

// changeOf returns the change of the result of an operation.
func (t turn) changeOf(w *walk, o *ir.Arith, at int) (s step, ok bool) {
	rule, ok := walkRules[o.F.Name]
	if !ok {
		return s, false
	}
	parts := make([]step, len(o.S))
	for i, r := range o.S {
		if parts[i], ok = t.change(w, r, at); !ok {
			return s, false
		}
	}
	k := int64(1)
	if rule.times {
		if k, ok = t.constant(o.S[1]); !ok || k < 0 || k > maxTimes {
			return s, false
		}
		if rule.shift {
			if k > 12 {
				return s, false
			}
			k = 1 << k
		}
	}
	if rule.widens {
		w.widens = append(w.widens, widening{at, o.S[0], rule.signed, parts[0]})
	}
	s = s.plus(parts[0], k)
	if rule.adds > 0 {
		s = s.plus(parts[rule.adds], rule.sign)
	}
	return s, true
}

// walkRule describes the effect of an operation on steps: that of the first operand,
// times the second operand if that is a constant factor, plus that of another operand.
type walkRule struct {
	times, shift   bool
	widens, signed bool // the first operand, to 64 bits
	adds           int  // the operand that is added
	sign           int64
}

// walkRules has the rules of operations, by name.
var walkRules = func() map[string]walkRule {
	m := map[string]walkRule{"plus.b64": {}, "shl.b32": {times: true, shift: true}, "shl.b64": {times: true, shift: true}}
	for _, t := range []string{"b32", "b64", "u32", "u64", "s32", "s64"} {
		m["mov."+t] = walkRule{}
		m["add."+t] = walkRule{adds: 1, sign: 1}
		m["sub."+t] = walkRule{adds: 1, sign: -1}
		m["mul.lo."+t] = walkRule{times: true}
		m["mad.lo."+t] = walkRule{times: true, adds: 2, sign: 1}
	}
	for _, t := range []string{"u32", "s32"} {
		signed := t == "s32"
		m["mul.wide."+t] = walkRule{times: true, widens: true, signed: signed}
		m["mad.wide."+t] = walkRule{times: true, widens: true, signed: signed, adds: 2, sign: 1}
		m["cvt.u64."+t] = walkRule{widens: true, signed: signed}
		m["cvt.s64."+t] = walkRule{widens: true, signed: signed}
	}
	return m
}()

// since returns what the turn has added, up to an instruction, to the value that root
// had when it began, if r holds that sum.
func (t turn) since(root, r ir.Ref, at int) (s step, ok bool) {
	d := t.def(r, at)
	if d < 0 {
		return s, r == root
	}
	o := t.arith(d)
	if o == nil {
		return s, false
	}
	switch o.F.Name {
	case "mov.b32", "mov.u32", "mov.s32", "mov.b64", "mov.u64", "mov.s64":
		return t.since(root, o.S[0], d)
	case "plus.b64":
		s, ok = t.since(root, o.S[0], d)
		s.k += int64(o.F.Constants[0])
		return s, ok && s.bounded()
	case "add.u32", "add.s32", "add.u64", "add.s64":
		for i := range 2 {
			if more, ok := t.fixed(o.S[1-i]); ok {
				if s, ok = t.since(root, o.S[i], d); ok {
					s = s.plus(more, 1)
					return s, s.bounded()
				}
			}
		}
	case "sub.u32", "sub.s32", "sub.u64", "sub.s64":
		if more, ok := t.fixed(o.S[1]); ok {
			s, ok = t.since(root, o.S[0], d)
			s = s.plus(more, -1)
			return s, ok && s.bounded()
		}
	}
	return s, false
}

// fixed returns the value of a register that the loop does not write, as a step.
func (t turn) fixed(r ir.Ref) (s step, ok bool) {
	if k, ok := t.constant(r); ok {
		return step{k: k}, k > math.MinInt32 && k < math.MaxInt32
	}
	if t.def(r, len(t.insts)) >= 0 {
		return s, false
	}
	return step{terms: []term{{r, 1}}}, true
}

// walks finds the walk of a group of a loop, and reports whether there is one.
func (b *builder) walks(g *group, index int) bool {
	l := b.cycle
	if l == nil || l.insts == nil || g.expect >= apart || len(l.walks) == maxWalks {
		return false
	}
	w := turn{l.insts, b.known}.walkOf(g.Base, index)
	if w == nil {
		return false
	}
	terms := slices.Clone(l.terms)
	for _, s := range append([]step{w.step}, stepsOf(w.widens)...) {
		for _, t := range s.terms {
			if !slices.Contains(terms, t.r) {
				terms = append(terms, t.r)
			}
		}
	}
	if len(terms) > maxTerms {
		return false
	}
	l.terms, g.walk, g.walkIndex = terms, w, len(l.walks)
	l.walks = append(l.walks, g)
	return true
}

func stepsOf(list []widening) (steps []step) {
	for _, w := range list {
		steps = append(steps, w.step)
	}
	return steps
}
