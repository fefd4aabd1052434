package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The products with a sparse A: mma.sp and wgmma.mma_async.sp.

// metadata returns the metadata of a warp's lanes.
func (m *machine) metadata(s *ir.Sparsity, w int) (e ops.Metadata) {
	e.Selector = s.Selector
	copy(e.Lanes[:], m.v32(s.Metadata.Slot, w, w+1))
	return e
}

func multiplySparse(o *ir.SparseProduct) whole {
	d, a, b, c := slotsOf(o.D), slotsOf(o.A), slotsOf(o.B), slotsOf(o.C)
	return func(m *machine, w int, _ uint32) error {
		e := m.metadata(&o.Sparsity, w)
		o.F.Multiply(&m.matrix.dense, m.registers(w), d, a, b, c, &e)
		return nil
	}
}

func multiplySharedSparse(o *ir.SparseWarpgroupProduct) whole {
	d, slots := slotsOf(o.D), slotsOf(o.A)
	return func(m *machine, w int, _ uint32) error {
		c := d
		if (m.preds[o.Add.Slot*maxWarps+w]&1 != 0) == o.Add.Not {
			c = nil
		}
		a := ops.Multiplicand{First: 16 * (w % warpsPerGroup), Across: o.Flip[0], Negated: o.Neg[0]}
		if o.InA {
			a.Slots = slots
		} else {
			a.Matrix = ops.SharedMatrixOf(m.get(o.A[0], w*ir.WarpSize))
		}
		b := ops.Multiplicand{Matrix: ops.SharedMatrixOf(m.get(o.B, w*ir.WarpSize)), Across: o.Flip[1], Negated: o.Neg[1]}
		e := m.metadata(&o.Sparse, w)
		if err := o.Sparse.F.MultiplyShared(&m.matrix.dense, m.shared, m.registers(w), d, a, b, c, &e); err != nil {
			return fmt.Errorf("%w: %w", abi.ErrIllegalAddress, err)
		}
		return nil
	}
}
