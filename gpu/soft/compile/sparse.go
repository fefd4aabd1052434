package compile

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The products with a sparse A: mma.sp and wgmma.mma_async.sp.

// sparse are the qualifiers that make A of an mma sparse. An ordered one may only have
// metadata that the other one may have, too.
var sparse = []string{"sp", "sp::ordered_metadata"}

// isSparse reports whether the qualifiers of an mma that formOf does not decode are one
// of these.
func (f *matrixForm) isSparse() bool { return len(f.rest) == 1 && slices.Contains(sparse, f.rest[0]) }

// sparseProduct compiles mma.sp.
func (c *compiler) sparseProduct(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	if len(f.types) != 4 || len(f.cols) != 2 {
		return nil, broken(in, qualifiers(in.Mods), "mma.sp must have 4 types, of D, A, B and C, and 2 layouts")
	}
	if err := operands(in, 6); err != nil {
		return nil, err
	}
	p, err := ops.NewSparseMMA(ops.MMAForm{
		M: f.m, N: f.n, K: f.k, D: f.types[0], A: f.types[1], B: f.types[2], C: f.types[3],
		RowA: !f.cols[0], RowB: !f.cols[1], Saturate: f.saturate,
	})
	if err != nil {
		return nil, missing(in, "mma.sp with %v", err)
	}
	o := &ir.SparseProduct{}
	fd, fa, fb, fc := p.Fragments()
	for i, r := range []*[]ir.Ref{&o.D, &o.A, &o.B, &o.C} {
		if *r, err = c.fragment(&in.Args[i], []*ops.Fragment{fd, fa, fb, fc}[i], i == 0); err != nil {
			return nil, err
		}
	}
	o.Sparsity, err = c.sparsity(in, p, in.Args[4:])
	return o, err
}

// sparsity compiles the metadata and the selector.
func (c *compiler) sparsity(in *ptx.Inst, p *ops.SparseMMA, args []ptx.Operand) (s ir.Sparsity, err error) {
	selector := &args[1]
	if selector.Kind != ptx.KindInt || selector.Bits >= uint64(p.Selectors()) {
		return s, broken(in, foundOf(selector), "the sparsity selector of this shape and type must be a constant less than %d", p.Selectors())
	}
	s = ir.Sparsity{F: p, Selector: int(selector.Bits)}
	s.Metadata, err = c.source(&args[0], ir.Class32, ptx.B32)
	return s, err
}

// sparseWarpgroup compiles wgmma.mma_async.sp, whose metadata and selector are before
// the predicate.
func (c *compiler) sparseWarpgroup(in *ptx.Inst, f matrixForm) (ir.Op, error) {
	p, err := ops.NewSparseWarpgroupMMA(ops.WarpgroupForm{N: f.n, K: f.k, D: f.types[0], A: f.types[1], B: f.types[2], Saturate: f.saturate, Bitwise: f.bitwise})
	if err != nil {
		return nil, missing(in, "wgmma.mma_async.sp with %v", err)
	}
	if len(in.Args) < 6 {
		return nil, fewOperands(in, len(in.Args), 6)
	}
	fd, fa, _, _ := p.Fragments()
	o := &ir.SparseWarpgroupProduct{}
	if o.Sparse, err = c.sparsity(in, p, in.Args[3:5]); err != nil {
		return nil, err
	}
	side := *in
	side.Args = slices.Delete(slices.Clone(in.Args), 3, 5)
	return o, c.warpgroupOperands(&o.WarpgroupProduct, &side, fd, fa, f.types[1])
}
