package compile

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// wgmma compiles wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions"). It is executed at once, so that wgmma.fence, .commit_group and
// .wait_group have no effect.
func (c *compiler) wgmma(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	sp := slices.Equal(f.rest, []string{"mma_async", "sp"})
	switch {
	case len(f.rest) == 0 || f.rest[0] != "mma_async" || len(f.rest) > 1 && !sp || len(f.cols) > 0:
		return nil, missingQualifiers(in, in.Mods)
	case f.m != 64:
		return nil, broken(in, f.m, "the shape of wgmma.mma_async must have 64 rows (.m64n*k*)")
	case len(f.types) != 3:
		return nil, broken(in, len(f.types), "wgmma.mma_async must have 3 types, of D, A and B")
	case len(in.Args) < 4:
		return nil, fewOperands(in, len(in.Args), 4)
	}
	if sp {
		return c.sparseWarpgroup(in, f)
	}
	p, err := ops.NewWarpgroupMMA(ops.WarpgroupForm{N: f.n, K: f.k, D: f.types[0], A: f.types[1], B: f.types[2], Saturate: f.saturate, Bitwise: f.bitwise})
	if err != nil {
		return nil, missing(in, "wgmma.mma_async with %v", err)
	}
	o := &ir.WarpgroupProduct{F: p}
	return o, c.warpgroupOperands(o, in, &p.D, &p.A, f.types[1])
}

// warpgroupOperands compiles the operands, for fragments of D and of A and the type of
// A's elements.
func (c *compiler) warpgroupOperands(o *ir.WarpgroupProduct, in *ptx.Inst, d, a *ops.Fragment, t *ops.Element) (err error) {
	if o.D, err = c.fragment(&in.Args[0], d, true); err != nil {
		return err
	}
	if o.InA = in.Args[1].Kind == ptx.KindVec; o.InA {
		o.A, err = c.fragment(&in.Args[1], a, false)
	} else {
		o.A = make([]ir.Ref, 1)
		o.A[0], err = c.source(&in.Args[1], ir.Class64, ptx.B64)
	}
	if err != nil {
		return err
	}
	if o.B, err = c.source(&in.Args[2], ir.Class64, ptx.B64); err != nil {
		return err
	}
	if o.Add, err = c.predSource(&in.Args[3]); err != nil {
		return err
	}
	return c.warpgroupOptions(o, in, t)
}

// warpgroupOptions compiles the constants after the operands: 1 or -1 for A and B of
// floating-point numbers, and for halves whether those in memory are transposed.
func (c *compiler) warpgroupOptions(o *ir.WarpgroupProduct, in *ptx.Inst, t *ops.Element) error {
	options := in.Args[4:]
	scales, flips := 2, 0
	switch {
	case t.Whole():
		scales = 0
	case t.Bits == 16 && o.InA:
		flips = 1
	case t.Bits == 16:
		flips = 2
	}
	if len(options) != scales+flips {
		return wrongOperands(in, len(in.Args), 4+scales+flips)
	}
	for i := range options {
		v := int64(options[i].Bits)
		switch {
		case options[i].Kind != ptx.KindInt:
			return broken(in, kindOf(&options[i]), "operand %d of wgmma.mma_async must be a constant", i+5)
		case i < scales && (v == 1 || v == -1):
			o.Neg[i] = v < 0
		case i >= scales && (v == 0 || v == 1):
			o.Flip[i-scales+2-flips] = v == 1
		case i < scales:
			return broken(in, v, "operand %d of wgmma.mma_async, a sign, must be 1 or -1", i+5)
		default:
			return broken(in, v, "operand %d of wgmma.mma_async, which transposes, must be 0 or 1", i+5)
		}
	}
	return nil
}
