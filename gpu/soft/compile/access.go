package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The instructions ld and st, and the memory operand of atom and red (PTX ISA, "Data
// Movement and Conversion Instructions": ld, st).

// access is the memory operand of an instruction, with the type of its elements.
type access struct {
	ir.Access
	typ ptx.Type
}

// access decodes the modifiers and the memory operand of ld, st, atom and red.
// Modifiers of cache, order and scope have no effect here: a block executes in program
// order.
func (c *compiler) access(in *ptx.Inst, mem *ptx.Operand, skip map[string]bool) (access, error) {
	a := access{Access: ir.Access{N: 1, Mask: ^uint64(0), Local: c.mod.spaces.Local}}
	param := false
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			a.typ, a.Size, a.Signed = t, uint64(t.Size()), t.Signed()
			continue
		}
		switch m {
		case "global", "const":
			a.Space = ir.Global
		case "shared", "shared::cta", "shared::cluster":
			a.Space = ir.Shared
		case "local":
			a.Space = ir.Local
		case "param", "param::entry", "param::func":
			param = true
		case "v2":
			a.N = 2
		case "v4":
			a.N = 4
		case "v8":
			a.N = 8
		case "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio":
			a.Strong = true
		case "weak", "cta", "gpu", "sys", "cluster",
			"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt",
			"L1::evict_normal", "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L1::evict_unchanged",
			"L2::64B", "L2::128B", "L2::256B":
		default:
			if !skip[m] {
				return a, missing(in, "%s with qualifier .%s", in.Op, m)
			}
		}
	}
	switch {
	case a.typ == ptx.NoType:
		return a, broken(in, qualifiers(in.Mods), "%s must have a type", in.Op)
	case a.typ == ptx.Pred:
		return a, broken(in, ".pred", "the type of %s must be one that memory holds", in.Op)
	case a.typ == ptx.B128:
		return a, missing(in, "%s of type .b128", in.Op)
	case mem.Kind != ptx.KindMem || len(mem.List) > 1:
		return a, broken(in, kindOf(mem), "the address of %s must be [register], [variable] or [constant], with or without an offset", in.Op)
	}
	a.Off = uint64(mem.Off)
	if len(mem.List) == 0 {
		a.Base = c.constant(ir.Class64, 0)
	} else {
		b := &mem.List[0]
		var err error
		switch b.Kind {
		case ptx.KindReg:
			a.Base = c.fr.regs[b.Reg]
			if a.Base.Class == ir.ClassPred {
				return a, broken(in, "a predicate", "an address must be in a register of 32 or 64 bits")
			}
		case ptx.KindVar:
			a.Base, err = c.source(b, ir.Class64, ptx.U64)
		default:
			return a, broken(in, kindOf(b), "an address must be a register, a variable or a constant")
		}
		if err != nil {
			return a, err
		}
		if param {
			a.Space = ir.Param
			if _, local := c.fr.vars[b.Var]; local || !c.fr.f.Entry {
				a.Space = ir.Local
			}
			return a, nil
		}
		if b.Kind == ptx.KindVar && a.Space == ir.Generic { // ld.u32 %r, [var]
			base, _ := spaceBase(&c.mod.spaces, b.Var.Space.String())
			a.Off += base
		}
	}
	if param {
		a.Space = ir.Param
	}
	return a, nil
}

func (c *compiler) vector(a *access, o *ptx.Operand) ([]*ptx.Operand, error) {
	if a.N == 1 {
		return []*ptx.Operand{o}, nil
	}
	if o.Kind != ptx.KindVec || len(o.List) != a.N {
		return nil, wrongLength(c.in, o, a.N)
	}
	var list []*ptx.Operand
	for i := range o.List {
		list = append(list, &o.List[i])
	}
	return list, nil
}

func (c *compiler) load(in *ptx.Inst) ([]ir.Op, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if from, ok := c.valueOf(&in.Args[1]); ok {
		to, err := c.dest(&in.Args[0], from.Class)
		return []ir.Op{copied(to, from)}, err
	}
	a, err := c.access(in, &in.Args[1], nil)
	if err != nil {
		return nil, err
	}
	elements, err := c.vector(&a, &in.Args[0])
	if err != nil {
		return nil, err
	}
	dst := make([]ir.Ref, len(elements))
	for i, o := range elements {
		if dst[i], err = c.loadDest(o, a.typ); err != nil {
			return nil, err
		}
		if o.Kind == ptx.KindReg && c.fr.f.Regs[o.Reg].Type.Size() == 2 {
			if a.Mask = 0xffff; a.typ.Size() > 2 {
				return nil, c.smallRegister(o.Reg, a.typ)
			}
		}
	}
	base := in.Args[1].List
	return []ir.Op{&ir.Load{Access: a.Access, D: dst, Fixed: len(base) == 0 || base[0].Kind == ptx.KindVar}}, nil
}

// loadDest returns the destination of a load. The register may be wider than the loaded
// type (PTX ISA, "Operand Size Exceeding Instruction-Type Size").
func (c *compiler) loadDest(o *ptx.Operand, t ptx.Type) (ir.Ref, error) {
	if o.Kind == ptx.KindReg {
		r := c.fr.regs[o.Reg]
		if r.Class == ir.ClassPred || r.Class == ir.Class32 && t.Size() == 8 {
			return r, c.smallRegister(o.Reg, t)
		}
		return r, nil
	}
	return c.dest(o, classOf(t))
}

func (c *compiler) store(in *ptx.Inst) ([]ir.Op, error) {
	if in.Has("async") {
		return c.async(in, (*compiler).store)
	}
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if to, ok := c.valueOf(&in.Args[0]); ok {
		t, err := c.last(in)
		if err != nil {
			return nil, err
		}
		from, err := c.source(&in.Args[1], to.Class, t)
		return []ir.Op{copied(to, from)}, err
	}
	a, err := c.access(in, &in.Args[0], nil)
	if err != nil {
		return nil, err
	}
	if a.Space == ir.Param {
		return nil, broken(in, ".param", "st must not write to the parameters of a kernel, which are read-only")
	}
	elements, err := c.vector(&a, &in.Args[1])
	if err != nil {
		return nil, err
	}
	src := make([]ir.Ref, len(elements))
	for i, o := range elements {
		cl := classOf(a.typ)
		if o.Kind == ptx.KindReg && c.fr.regs[o.Reg].Class == ir.Class64 {
			cl = ir.Class64
		}
		if src[i], err = c.source(o, cl, a.typ); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.Store{Access: a.Access, S: src}}, nil
}
