package ir

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Sparsity is a product with a sparse A, and where its metadata is.
type Sparsity struct {
	F        *ops.SparseMMA
	Metadata Ref
	Selector int // of the lanes whose metadata is read
}

func (s *Sparsity) text() string { return fmt.Sprintf("%s selector=%d", s.F, s.Selector) }

// SparseProduct is D = A B + C with a sparse A (mma.sp).
type SparseProduct struct {
	Sparsity
	D, A, B, C []Ref
}

// Name implements Op.
func (o *SparseProduct) Name() string { return "mma." + o.text() }

// Registers implements Op.
func (o *SparseProduct) Registers() (results, sources []Ref) {
	sources = append(append(registers(o.A...), registers(o.B...)...), registers(o.C...)...)
	return registers(o.D...), append(sources, o.Metadata)
}

// SparseWarpgroupProduct is a WarpgroupProduct with a sparse A (wgmma.mma_async.sp),
// whose F is nil.
type SparseWarpgroupProduct struct {
	WarpgroupProduct
	Sparse Sparsity
}

// Name implements Op.
func (o *SparseWarpgroupProduct) Name() string {
	return fmt.Sprintf("wgmma.%s neg=%v flip=%v%s", o.Sparse.text(), o.Neg, o.Flip, negations(o.Add))
}

// Registers implements Op.
func (o *SparseWarpgroupProduct) Registers() (results, sources []Ref) {
	results, sources = o.WarpgroupProduct.Registers()
	return results, append(sources, o.Sparse.Metadata)
}
