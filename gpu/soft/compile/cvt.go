package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

func (c *compiler) cvt(in *ptx.Inst) ([]ir.Op, error) {
	if in.Has("pack") {
		return c.cvtPack(in)
	}
	if f, ok := ops.Find("cvt", in.Mods...); ok && c.fits(in, f) {
		return c.apply(f, in.Args, ptx.B32)
	}
	v, ok := ops.FindConversion(in.Mods)
	if !ok {
		return nil, missingQualifiers(in, in.Mods)
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if v.From.Float() && !v.To.Float() && !v.ToInteger {
		return nil, broken(in, qualifiers(in.Mods), "cvt from floating point to an integer must have one of the roundings .rni, .rzi, .rmi and .rpi")
	}
	src, err := c.cvtReg(&in.Args[1], v.From)
	if err != nil {
		return nil, err
	}
	d, err := c.cvtReg(&in.Args[0], v.To)
	if err != nil {
		return nil, err
	}
	keep := ^uint64(0)
	if o := in.Args[0]; o.Kind == ptx.KindReg && c.fr.f.Regs[o.Reg].Type.Size() == 2 {
		keep = 0xffff
	}
	return []ir.Op{&ir.Convert{F: v, D: d, S: src, Keep: keep}}, nil
}

// fits reports whether the operands have exactly the loop's register widths. A register
// of 16 bits is stored in 32, which a signed result would fill.
func (c *compiler) fits(in *ptx.Inst, f ops.Operation) bool {
	d, src, _ := ir.ShapeOf(f.Loop)
	if len(in.Args) != len(src)+1 {
		return false
	}
	if o, to := in.Args[0], in.OperandTypes()[0]; o.Kind == ptx.KindReg && to.Signed() && c.fr.f.Regs[o.Reg].Type.Size() > to.Size() {
		return false
	}
	want := append([]ir.Class{d}, src...)
	for i := range want {
		if o := in.Args[i]; o.Kind == ptx.KindReg && c.fr.regs[o.Reg].Class != want[i] {
			return false
		}
	}
	return true
}

// cvtReg returns the register of an operand of cvt, which may be wider than its type.
func (c *compiler) cvtReg(o *ptx.Operand, t ptx.Type) (ir.Ref, error) {
	if o.Kind == ptx.KindReg {
		r := c.fr.regs[o.Reg]
		if r.Class == ir.ClassPred || r.Class == ir.Class32 && t.Size() == 8 {
			return r, c.smallRegister(o.Reg, t)
		}
		return r, nil
	}
	return c.source(o, classOf(t), t)
}
