package soft

import "github.com/basalt-gpu/basalt/gpu/ptx"

func (c *compiler) cvt(in *ptx.Inst) ([]step, error) {
	if f, ok := Find("cvt", in.Mods...); ok && c.fits(in, f) {
		return c.apply(f, in.Args, ptx.B32)
	}
	v := conversion{mode: nearest}
	types := 0
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			if types++; types == 1 {
				v.to = t
			} else {
				v.from = t
			}
			continue
		}
		switch m {
		case "rn":
		case "rz":
			v.mode = towardZero
		case "rm":
			v.mode = towardMinus
		case "rp":
			v.mode = towardPlus
		case "rni":
			v.toInteger = true
		case "rzi":
			v.mode, v.toInteger = towardZero, true
		case "rmi":
			v.mode, v.toInteger = towardMinus, true
		case "rpi":
			v.mode, v.toInteger = towardPlus, true
		case "ftz":
			v.ftz = true
		case "sat":
			v.sat = true
		default:
			return nil, in.Errorf("unsupported conversion")
		}
	}
	if types != 2 || len(in.Args) != 2 || !convertible(v.to) || !convertible(v.from) {
		return nil, in.Errorf("unsupported conversion")
	}
	if v.from.Float() && !v.to.Float() && !v.toInteger {
		return nil, in.Errorf("conversion without rounding")
	}
	src, err := c.cvtReg(&in.Args[1], v.from)
	if err != nil {
		return nil, err
	}
	d, err := c.cvtReg(&in.Args[0], v.to)
	if err != nil {
		return nil, err
	}
	keep := ^uint64(0)
	if o := in.Args[0]; o.Kind == ptx.KindReg && c.fr.f.Regs[o.Reg].Type.Size() == 2 {
		keep = 0xffff
	}
	return []step{Convert(d, src, keep, v.convert)}, nil
}

func convertible(t ptx.Type) bool {
	switch t {
	case ptx.F16x2, ptx.BF16x2, ptx.TF32, ptx.Pred, ptx.B128, ptx.NoType, ptx.B8, ptx.B16, ptx.B32, ptx.B64:
		return false
	}
	return true
}

// fits says that the operands have exactly the loop's register widths.
func (c *compiler) fits(in *ptx.Inst, f any) bool {
	d, src, _ := shapeOf(f)
	if len(in.Args) != len(src)+1 {
		return false
	}
	want := append([]class{d}, src...)
	for i := range want {
		if o := in.Args[i]; o.Kind == ptx.KindReg && c.fr.regs[o.Reg].class != want[i] {
			return false
		}
	}
	return true
}

// cvtReg: registers of a cvt may be wider than its types.
func (c *compiler) cvtReg(o *ptx.Operand, t ptx.Type) (ref, error) {
	if o.Kind == ptx.KindReg {
		r := c.fr.regs[o.Reg]
		if r.class == classPred || r.class == class32 && t.Size() == 8 {
			return r, c.in.Errorf("register " + c.fr.f.Regs[o.Reg].Name + " has the wrong size")
		}
		return r, nil
	}
	return c.source(o, classOf(t), t)
}
