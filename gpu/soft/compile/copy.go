package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// copyAsync compiles cp.async with its groups (PTX ISA, "Data Movement and Conversion
// Instructions: Asynchronous copy": the forms that are not bulk copies). Copies are
// executed at once, so commits and waits have no effect.
func (c *compiler) copyAsync(in *ptx.Inst) ([]ir.Op, error) {
	mods := in.Mods
	if len(mods) > 2 && mods[0] == "reduce" {
		side := *in
		side.Mods = mods[1:]
		return c.reduceBulk(&side)
	}
	if len(mods) < 2 || mods[0] != "async" {
		return nil, missingQualifiers(in, mods)
	}
	switch mods[1] {
	case "bulk":
		if len(mods) > 2 {
			return c.copyBulk(in, mods[2:])
		}
		return nil, broken(in, "none", "cp.async.bulk must have qualifiers for its spaces")
	case "commit_group", "wait_group", "wait_all":
		return nil, nil
	case "mbarrier":
		if len(mods) > 3 {
			return c.copiesArrive(in)
		}
		return nil, broken(in, qualifiers(mods[2:]), "cp.async.mbarrier must have .arrive and .b64")
	case "ca", "cg":
	default:
		return nil, missing(in, "cp.async with qualifier .%s", mods[1])
	}
	rest := slices.DeleteFunc(slices.Clone(mods[2:]), func(m string) bool { return strings.HasPrefix(m, "L2::") })
	if len(rest) != 2 || rest[0] != "shared" && rest[0] != "shared::cta" || rest[1] != "global" {
		return nil, broken(in, qualifiers(rest), "the spaces of cp.async must be .shared.global")
	}
	if err := operands(in, 3, 4); err != nil {
		return nil, err
	}
	k := &ir.CopyAsync{Count: ir.None}
	var err error
	if k.To, err = c.copied(in, rest[0], 0); err != nil {
		return nil, err
	}
	if k.From, err = c.copied(in, rest[1], 1); err != nil {
		return nil, err
	}
	if len(in.Args) == 4 {
		if err := c.copiedPart(k, &in.Args[3]); err != nil {
			return nil, err
		}
	}
	return []ir.Op{k}, nil
}

// copied returns the access of one side of the copy.
func (c *compiler) copied(in *ptx.Inst, space string, arg int) (ir.Access, error) {
	size := in.Args[2]
	if size.Kind != ptx.KindInt {
		return ir.Access{}, broken(in, kindOf(&size), "operand 3 of cp.async must be 4, 8 or 16 (bytes)")
	}
	if size.Bits != 4 && size.Bits != 8 && size.Bits != 16 {
		return ir.Access{}, broken(in, size.Bits, "operand 3 of cp.async must be 4, 8 or 16 (bytes)")
	}
	side := *in
	side.Mods = []string{space, "b32"}
	a, err := c.access(&side, &in.Args[arg], nil)
	a.Size = size.Bits
	return a.Access, err
}

// copiedPart compiles the last operand: how many bytes are copied, or whether none are.
func (c *compiler) copiedPart(k *ir.CopyAsync, o *ptx.Operand) (err error) {
	if o.Kind == ptx.KindReg && c.fr.regs[o.Reg].Class == ir.ClassPred {
		k.Ignore = &ir.Pred{Slot: c.fr.regs[o.Reg].Slot, Not: o.Not}
		return nil
	}
	k.Count, err = c.source(o, ir.Class32, ptx.U32)
	return err
}
