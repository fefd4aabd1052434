package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

func (c *compiler) cvt(in *ptx.Inst) ([]ir.Op, error) {
	if f, ok := ops.Find("cvt", in.Mods...); ok && c.fits(in, f) {
		return c.apply(f, in.Args, ptx.B32)
	}
	v := ops.Conversion{Mode: ops.Nearest}
	types := 0
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			if types++; types == 1 {
				v.To = t
			} else {
				v.From = t
			}
			continue
		}
		switch m {
		case "rn":
		case "rz":
			v.Mode = ops.TowardZero
		case "rm":
			v.Mode = ops.TowardMinus
		case "rp":
			v.Mode = ops.TowardPlus
		case "rni":
			v.ToInteger = true
		case "rzi":
			v.Mode, v.ToInteger = ops.TowardZero, true
		case "rmi":
			v.Mode, v.ToInteger = ops.TowardMinus, true
		case "rpi":
			v.Mode, v.ToInteger = ops.TowardPlus, true
		case "ftz":
			v.FTZ = true
		case "sat":
			v.Sat = true
		default:
			return nil, in.Errorf("unsupported conversion")
		}
	}
	if types != 2 || len(in.Args) != 2 || !convertible(v.To) || !convertible(v.From) {
		return nil, in.Errorf("unsupported conversion")
	}
	if v.From.Float() && !v.To.Float() && !v.ToInteger {
		return nil, in.Errorf("conversion without rounding")
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

func convertible(t ptx.Type) bool {
	switch t {
	case ptx.F16x2, ptx.BF16x2, ptx.TF32, ptx.E4M3x2, ptx.E5M2x2, ptx.Pred, ptx.B128, ptx.NoType, ptx.B8, ptx.B16, ptx.B32, ptx.B64:
		return false
	}
	return true
}

// fits says that the operands have exactly the loop's register widths.
func (c *compiler) fits(in *ptx.Inst, f ops.Operation) bool {
	d, src, _ := ir.ShapeOf(f.Loop)
	if len(in.Args) != len(src)+1 {
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

// cvtReg: registers of a cvt may be wider than its types.
func (c *compiler) cvtReg(o *ptx.Operand, t ptx.Type) (ir.Ref, error) {
	if o.Kind == ptx.KindReg {
		r := c.fr.regs[o.Reg]
		if r.Class == ir.ClassPred || r.Class == ir.Class32 && t.Size() == 8 {
			return r, c.in.Errorf("register " + c.fr.f.Regs[o.Reg].Name + " has the wrong size")
		}
		return r, nil
	}
	return c.source(o, classOf(t), t)
}
