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
	return func(m *machine, w int, _ uint32) error {
		r := &m.matrix
		a, b, c := m.readRegisters(&r.a, w, o.A), m.readRegisters(&r.b, w, o.B), m.readRegisters(&r.c, w, o.C)
		e := m.metadata(&o.Sparsity, w)
		o.F.Multiply(&r.dense, c, a, b, c, &e)
		m.writeRegisters(w, o.D, c)
		return nil
	}
}

func multiplySharedSparse(o *ir.SparseWarpgroupProduct) whole {
	return func(m *machine, w int, _ uint32) error {
		r := &m.matrix
		d := m.readRegisters(&r.c, w, o.D)
		c := d
		if (m.preds[o.Add.Slot*maxWarps+w]&1 != 0) == o.Add.Not {
			c = nil
		}
		a := ops.Multiplicand{First: 16 * (w % warpsPerGroup), Across: o.Flip[0], Negated: o.Neg[0]}
		if o.InA {
			a.Registers = m.readRegisters(&r.a, w, o.A)
		} else {
			a.Matrix = ops.SharedMatrixOf(m.get(o.A[0], w*ir.WarpSize))
		}
		b := ops.Multiplicand{Matrix: ops.SharedMatrixOf(m.get(o.B, w*ir.WarpSize)), Across: o.Flip[1], Negated: o.Neg[1]}
		e := m.metadata(&o.Sparse, w)
		if err := o.Sparse.F.MultiplyShared(&r.dense, m.shared, d, a, b, c, &e); err != nil {
			return fmt.Errorf("%w: %w", abi.ErrIllegalAddress, err)
		}
		m.writeRegisters(w, o.D, d)
		return nil
	}
}
