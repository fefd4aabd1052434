package native

import (
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Steady registers. A register that is written by one instruction only, or by several
// identical ones, and is computed only from parameters, constants and special
// registers, has one value in each lane as long as the block of threads runs, wherever
// that instruction is: it can be computed at any time and any number of times. For a
// warp that is a row of threads, most of them are affine: the first lane's value and a
// step from each lane to the next, which takes one register of the processor and no
// vectors.

// form is the pattern of a steady register's values in a warp.
type form uint8

const (
	formless form = iota
	affine        // the first lane's value and a step, modulo the register's width
	rising        // of 32 bits, not decreasing from lane to lane, signed or unsigned as signed has it; both ends are known
	decided       // a predicate
)

// steady describes the values of a steady register.
type steady struct {
	form form
	step int64 // of affine; 0: all lanes have the same value
	// begins: step is 1, and the first lane's value is a multiple of the warp size. small:
	// nothing overflows when 32 is added.
	begins, small bool
	signed        bool     // of rising: as a signed number
	of            *ir.Inst // nil: a special register or a constant
}

// maxStep limits the step between lanes.
const maxStep = 1 << 20

// Steady has the steady registers of a program.
type Steady struct {
	known map[ir.Ref]*steady // nil: not steady, or not found yet
	defs  map[ir.Ref]*ir.Inst
	same  map[ir.Ref]bool // results of alike that are known
	p     *ir.Program
	rules map[string]*steadyRule
}

// FindSteady finds the steady registers of a program. It returns nil if there are calls
// that save and restore registers. The forms hold for warps that are rows: the first
// dimension of a block of threads is a multiple of the warp size, and the launch has as
// many bytes of parameters as the program declares.
func FindSteady(p *ir.Program) *Steady {
	s := &Steady{known: map[ir.Ref]*steady{}, same: map[ir.Ref]bool{}, defs: map[ir.Ref]*ir.Inst{}, p: p, rules: steadyRules()}
	several := map[ir.Ref]bool{}
	record := func(in *ir.Inst, results []ir.Ref) {
		for _, r := range results {
			if old, ok := s.defs[r]; ok {
				several[r] = several[r] || !alike(old, in)
				continue
			}
			s.defs[r] = in
		}
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		switch b.End.(type) {
		case ir.CallDynamic, ir.CallAddress, ir.ReturnDynamic:
			return nil
		}
		if b.Sync != nil {
			results, _ := b.Sync.Registers()
			record(nil, results)
		}
		for j := range b.Insts {
			results, _ := b.Insts[j].Op.Registers()
			record(&b.Insts[j], results)
		}
	}
	s.leaves()
	for r, in := range s.defs {
		if several[r] || in == nil || in.Guard != nil || s.known[r] != nil || slices.Contains(p.Pointers(), r) {
			s.known[r] = nil
			delete(s.defs, r)
		}
	}
	return s
}

// leaves finds the registers that no instruction writes.
func (s *Steady) leaves() {
	for name, slot := range s.p.Specials {
		x := &steady{form: affine}
		switch {
		case name == "%tid.x" || name == "%laneid":
			x.step, x.begins, x.small = 1, true, true
		case strings.HasPrefix(name, "%lanemask"):
			continue
		}
		s.known[ir.Ref{Class: ir.Class32, Slot: slot}] = x
	}
	for slot := range s.p.Const32 {
		s.known[ir.Ref{Class: ir.Class32, Slot: slot}] = &steady{form: affine}
	}
	for slot := range s.p.Const64 {
		s.known[ir.Ref{Class: ir.Class64, Slot: slot}] = &steady{form: affine}
	}
}

// of returns what is known of a register, or nil.
func (s *Steady) of(r ir.Ref) *steady {
	x, ok := s.known[r]
	if ok || s.defs[r] == nil {
		return x
	}
	s.known[r] = nil // during the search, so that a register computed from itself is not steady
	in := s.defs[r]
	if f, ok := s.find(in.Op); ok && f.form != formless {
		f.of = in
		s.known[r] = &f
	}
	return s.known[r]
}

// written returns the register that an instruction writes if that is steady.
func (s *Steady) written(in *ir.Inst) (r ir.Ref, ok bool) {
	results, _ := in.Op.Registers()
	if len(results) != 1 {
		return r, false
	}
	x := s.of(results[0])
	return results[0], x != nil && x.of != nil
}

// varying are the special registers that differ between the warps of a block of
// threads.
var varying = []string{"%tid.x", "%tid.y", "%tid.z", "%warpid"}

// alike reports whether a steady register is the same in all warps of a block of
// threads, lane by lane.
func (s *Steady) alike(r ir.Ref) bool {
	x := s.of(r)
	if x == nil {
		return false
	}
	if same, ok := s.same[r]; ok {
		return same
	}
	s.same[r] = s.findAlike(r, x)
	return s.same[r]
}

func (s *Steady) findAlike(r ir.Ref, x *steady) bool {
	if x.of == nil {
		for _, name := range varying {
			if slot, ok := s.p.Specials[name]; ok && r == (ir.Ref{Class: ir.Class32, Slot: slot}) {
				return false
			}
		}
		return true
	}
	_, sources := x.of.Op.Registers()
	return !slices.ContainsFunc(sources, func(q ir.Ref) bool { return !s.alike(q) })
}

// alike reports whether two instructions compute the same value.
func alike(x, y *ir.Inst) bool {
	if x == nil || y == nil || x.Guard != nil || y.Guard != nil {
		return false
	}
	a, ok := x.Op.(*ir.Arith)
	b, other := y.Op.(*ir.Arith)
	return ok && other && a.F.Name == b.F.Name && slices.Equal(a.F.Constants, b.F.Constants) && slices.Equal(a.S, b.S)
}

// constant returns the value that a register has in all lanes of all launches.
func (s *Steady) constant(r ir.Ref) (uint64, bool) {
	if r.Class == ir.Class64 {
		v, ok := s.p.Const64[r.Slot]
		return v, ok
	}
	v, ok := s.p.Const32[r.Slot]
	return uint64(v), ok && r.Class == ir.Class32
}

// find returns the form of the result of an operation.
func (s *Steady) find(op ir.Op) (f steady, ok bool) {
	switch o := op.(type) {
	case *ir.Load:
		_, ok := s.param(o)
		return steady{form: affine}, ok
	case *ir.Logic:
		a, b := s.of(o.A.Ref()), s.of(o.B.Ref())
		return steady{form: decided}, a != nil && b != nil && slices.Contains([]string{"and", "or", "not", "mov"}, o.F)
	case *ir.Arith:
		if rule := s.rules[o.F.Name]; rule != nil && o.D.Class != ir.ClassNone {
			list := make([]*steady, len(o.S))
			for i, r := range o.S {
				if list[i] = s.of(r); list[i] == nil {
					return f, false
				}
			}
			return rule.form(s, o, list)
		}
	}
	return f, false
}

// param returns the offset of the parameter that a load reads, if it is one known
// offset.
func (s *Steady) param(o *ir.Load) (place uint64, ok bool) {
	base, ok := s.constant(o.Base)
	if !ok || o.Space != ir.Param || o.N != 1 || o.Size < 4 || o.D[0].Class == ir.ClassNone || o.Strong {
		return 0, false
	}
	place = (base + o.Off) & (1<<32 - 1)
	class := map[uint64]ir.Class{4: ir.Class32, 8: ir.Class64}[o.Size]
	return place, o.D[0].Class == class && place%o.Size == 0 && place+o.Size <= uint64(s.p.ParamBytes) && o.Mask<<(64-8*o.Size) == ^uint64(0)<<(64-8*o.Size)
}

// steadyRule describes an operation: the form of its result, and its code for the first
// lane (steady_code.go).
type steadyRule struct {
	form func(s *Steady, o *ir.Arith, x []*steady) (steady, bool)
	code func(c *scalars, o *ir.Arith, d scalar)
	same bool // the result equals the first operand
}

// stepped returns an affine form and reports whether its step is within bounds.
func stepped(n int64) (steady, bool) {
	return steady{form: affine, step: n}, n >= -maxStep && n <= maxStep
}

// steps returns the function of a form that is computed from the steps of operands that
// are all affine.
func steps(f func(n []int64) int64) func(*Steady, *ir.Arith, []*steady) (steady, bool) {
	return func(_ *Steady, _ *ir.Arith, x []*steady) (steady, bool) {
		n := make([]int64, len(x))
		for i := range x {
			if x[i].form != affine {
				return steady{}, false
			}
			n[i] = x[i].step
		}
		return stepped(f(n))
	}
}

// sameForm returns the form of the first operand.
func sameForm(_ *Steady, _ *ir.Arith, x []*steady) (steady, bool) {
	f := *x[0]
	f.of = nil
	return f, f.form == affine
}

// allAlike returns the form of the result of operands that are each the same in all
// lanes.
func allAlike(_ *Steady, _ *ir.Arith, x []*steady) (steady, bool) {
	for _, v := range x {
		if v.form != affine || v.step != 0 {
			return steady{}, false
		}
	}
	return steady{form: affine}, true
}

// product returns the form of the product of the first two operands, plus the third.
func product(s *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	for _, v := range x {
		if v.form != affine {
			return steady{}, false
		}
	}
	step := int64(0)
	for i := range 2 {
		if x[i].step == 0 {
			continue
		}
		k, ok := s.constant(o.S[1-i])
		if !ok || k > maxStep {
			return steady{}, false
		}
		step = x[i].step * int64(k)
	}
	if len(x) == 3 {
		step += x[2].step
	}
	return stepped(step)
}

// shiftedLeft returns the form of a shift by a constant.
func shiftedLeft(s *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	k, ok := s.constant(o.S[1])
	if !ok || k > 20 || x[0].form != affine {
		return steady{}, false
	}
	return stepped(x[0].step << k)
}

// shiftedRight returns the form of a right shift by a constant that removes the
// differences between lanes, or whose operand is the same in all lanes.
func shiftedRight(s *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	k, ok := s.constant(o.S[1])
	return steady{form: affine}, ok && k < 32 && x[0].form == affine && (x[0].step == 0 || x[0].begins && k >= 5)
}

// masked returns the form of a mask that keeps the lane number, or whose operands are
// the same in all lanes.
func masked(s *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	if k, ok := s.constant(o.S[1]); ok && x[0].form == affine && x[0].begins && k >= ir.WarpSize-1 && k&(k+1) == 0 {
		return steady{form: affine, step: 1, begins: true, small: true}, true
	}
	return allAlike(s, o, x)
}

// withSign reports whether an operation reads its operands as signed.
func withSign(o *ir.Arith) bool { return strings.HasSuffix(o.F.Name, ".s32") }

// chosen returns the form of the minimum or maximum of two.
func chosen(s *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	for _, v := range x {
		if v.form != affine && (v.form != rising || v.signed != withSign(o)) || v.step < 0 {
			return steady{}, false
		}
	}
	if f, ok := allAlike(s, o, x); ok {
		return f, ok
	}
	return steady{form: rising, signed: withSign(o)}, true
}

// compared returns the form of a comparison, a predicate: the difference of the
// operands increases or decreases from lane to lane. Values that increase as signed
// numbers may decrease once as unsigned ones, and the other way round.
func compared(_ *Steady, o *ir.Arith, x []*steady) (steady, bool) {
	for i, v := range x {
		other := x[1-i]
		if v.form != affine && (v.form != rising || v.signed != withSign(o) || other.form != affine || other.step != 0) {
			return steady{}, false
		}
	}
	return steady{form: decided}, true
}

func first(n []int64) int64 { return n[0] }

// steadyRules returns the operations whose result can be steady.
func steadyRules() map[string]*steadyRule {
	m := map[string]*steadyRule{}
	set := func(r steadyRule, names ...string) {
		for _, n := range names {
			m[n] = &r
		}
	}
	sum := steps(func(n []int64) int64 { return n[0] + n[1] })
	difference := steps(func(n []int64) int64 { return n[0] - n[1] })
	set(steadyRule{form: sameForm, same: true}, "mov.b32", "mov.u32", "mov.s32", "mov.f32", "mov.b64", "mov.u64", "mov.s64", "mov.f64")
	set(steadyRule{form: sum, code: (*scalars).add}, "add.u32", "add.s32", "add.u64", "add.s64")
	set(steadyRule{form: difference, code: (*scalars).sub}, "sub.u32", "sub.s32", "sub.u64", "sub.s64")
	set(steadyRule{form: steps(first), code: (*scalars).plus}, "plus.b64")
	set(steadyRule{form: product, code: (*scalars).mul}, "mul.lo.u32", "mul.lo.s32", "mad.lo.u32", "mad.lo.s32", "mul.lo.u64", "mul.lo.s64", "mad.lo.u64", "mad.lo.s64")
	set(steadyRule{form: product, code: (*scalars).mulWide}, "mul.wide.u32", "mul.wide.s32", "mad.wide.u32", "mad.wide.s32")
	set(steadyRule{form: shiftedLeft, code: (*scalars).shl}, "shl.b32", "shl.b64")
	set(steadyRule{form: shiftedRight, code: (*scalars).shr}, "shr.u32", "shr.b32")
	set(steadyRule{form: masked, code: (*scalars).and}, "and.b32")
	set(steadyRule{form: allAlike, code: (*scalars).or}, "or.b32")
	set(steadyRule{form: steps(first), code: (*scalars).widen}, "cvt.u64.u32", "cvt.s64.u32", "cvt.u64.s32", "cvt.s64.s32")
	set(steadyRule{form: steps(first), code: (*scalars).low}, "cvt.u32.u64", "cvt.s32.u64", "cvt.u32.s64", "cvt.s32.s64")
	set(steadyRule{form: chosen, code: (*scalars).choose}, "min.u32", "min.s32", "max.u32", "max.s32")
	for _, c := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		for _, t := range []string{"u32", "s32"} {
			set(steadyRule{form: compared, code: (*scalars).compare}, fmt.Sprintf("setp.%s.%s", c, t))
		}
	}
	return m
}
