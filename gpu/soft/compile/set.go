package compile

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// set compiles set (PTX ISA, "Comparison and Selection Instructions": set, also of
// "Half Precision"), which compares as setp does and has a value as result instead of a
// predicate. The type of the result is before that of the operands, or, as GCC writes
// it, first.
func (c *compiler) set(in *ptx.Inst) ([]ir.Op, error) {
	op, mods := boolOp(in.Mods)
	if len(mods) < 3 {
		return nil, broken(in, qualifiers(in.Mods), "set must have a comparison and 2 types, of the result and the sources")
	}
	if err := operands(in, compared(op)); err != nil {
		return nil, err
	}
	if _, ok := ptx.TypeByName(mods[0]); ok {
		mods = slices.Insert(mods[1:], len(mods)-2, mods[0])
	}
	dt, ok := ptx.TypeByName(mods[len(mods)-2])
	t, err := c.last(in)
	yes, known := setValue(dt)
	two := t == ptx.F16x2 || t == ptx.BF16x2
	if !ok || err != nil || !known || two && dt != t && dt != ptx.U32 && dt != ptx.S32 || !two && (dt == ptx.F16x2 || dt == ptx.BF16x2) {
		return nil, missingQualifiers(in, in.Mods)
	}
	mods = slices.Delete(slices.Clone(mods), len(mods)-2, len(mods)-1)
	if two {
		return c.setHalves(mods, op, t, yes)
	}
	s, p, err := c.compare(mods, &in.Args[1], &in.Args[2], t)
	if err != nil {
		return nil, err
	}
	steps, err := c.combined([]ir.Op{s}, op, p)
	if err != nil {
		return nil, err
	}
	sel, err := c.selectInto(&in.Args[0], c.constant(ir.Class32, uint64(yes)), c.constant(ir.Class32, 0), ir.PredOf(p, false))
	return append(steps, sel), err
}

// setValue returns the result of a true comparison for a type: 1.0, or all bits set.
func setValue(t ptx.Type) (v uint32, ok bool) {
	switch t {
	case ptx.U32, ptx.S32:
		return ^uint32(0), true
	case ptx.F32:
		return 0x3f800000, true
	case ptx.U16, ptx.S16:
		return 0xffff, true
	case ptx.F16:
		return 0x3c00, true
	case ptx.BF16:
		return 0x3f80, true
	case ptx.F16x2:
		return 0x3c003c00, true
	case ptx.BF16x2:
		return 0x3f803f80, true
	}
	return 0, false
}

// combined appends the step that combines a comparison with the instruction's last
// operand, if there is an operator.
func (c *compiler) combined(steps []ir.Op, op string, p ir.Ref) ([]ir.Op, error) {
	if op == "" {
		return steps, nil
	}
	other, err := c.predSource(&c.in.Args[3])
	return append(steps, &ir.Logic{F: op, D: p, A: ir.PredOf(p, false), B: other}), err
}

// setHalves compares each half of its operands, for the same half of the result. yes
// has the results of both halves.
func (c *compiler) setHalves(mods []string, op string, t ptx.Type, yes uint32) ([]ir.Op, error) {
	steps, holds, err := c.compareHalves(mods, op, t)
	if err != nil {
		return nil, err
	}
	result := []ir.Ref{c.fresh(ir.Class32), c.fresh(ir.Class32)}
	for i, r := range result {
		steps = append(steps, &ir.Select{D: r, A: c.constant(ir.Class32, uint64(yes&0xffff)), B: c.constant(ir.Class32, 0), P: ir.PredOf(holds[i], false)})
	}
	d, err := c.dest(&c.in.Args[0], ir.Class32)
	return append(steps, &ir.Pack{D: d, S: result, Each: 16}), err
}

// compareHalves compares each half of the sources of set or setp, and returns the
// predicates of the lower and the upper half, combined with the last operand.
func (c *compiler) compareHalves(mods []string, op string, t ptx.Type) (steps []ir.Op, holds [2]ir.Ref, err error) {
	half := map[ptx.Type]string{ptx.F16x2: "f16", ptx.BF16x2: "bf16"}[t]
	compare, ok := ops.Find("setp", append(slices.Clone(mods[:len(mods)-1]), half)...)
	if !ok {
		return nil, holds, missing(c.in, "comparison %s", qualifiers(mods))
	}
	var parts [2][]ir.Ref // of each source: low, high
	for i := range parts {
		src, err := c.source(&c.in.Args[i+1], ir.Class32, ptx.B32)
		if err != nil {
			return nil, holds, err
		}
		parts[i] = []ir.Ref{c.fresh(ir.Class32), c.fresh(ir.Class32)}
		steps = append(steps, &ir.Unpack{D: parts[i], S: src, Each: 16})
	}
	for i := range holds {
		holds[i] = c.fresh(ir.ClassPred)
		steps = append(steps, &ir.Arith{F: compare, D: holds[i], S: []ir.Ref{parts[0][i], parts[1][i]}, Scratch: true})
		if steps, err = c.combined(steps, op, holds[i]); err != nil {
			return nil, holds, err
		}
	}
	return steps, holds, nil
}

// setpHalves compiles setp of two halves: its results are those of the lower and of the
// upper half.
func (c *compiler) setpHalves(mods []string, op string, t ptx.Type, p ir.Ref, second *ptx.Operand) ([]ir.Op, error) {
	q, err := c.dest(second, ir.ClassPred)
	if err != nil {
		return nil, err
	}
	steps, holds, err := c.compareHalves(mods, op, t)
	low, high := ir.PredOf(holds[0], false), ir.PredOf(holds[1], false)
	results := []ir.Op{&ir.Logic{F: "mov", D: p, A: low, B: low}, &ir.Logic{F: "mov", D: q, A: high, B: high}}
	if c.in.Guard >= 0 && c.fr.regs[c.in.Guard] == p { // the guard of both must be written last
		slices.Reverse(results)
	}
	return append(steps, results...), err
}
