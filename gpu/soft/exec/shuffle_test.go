package exec

import (
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// TestFixedShuffle compares shuffles with constant operands with the general ones.
func TestFixedShuffle(t *testing.T) {
	for what := ir.ShuffleUp; what <= ir.ShuffleIdx; what++ {
		for b := range uint32(34) {
			slot := 3 * int(b%2) // the result is in the register of the values, or in another
			for _, c := range []uint32{0, 31, 0x1f00, 0x1f1f, 0x1800, 0x1807, 0x101f, 7} {
				e := ir.NewExchange("shfl")
				e.What, e.S, e.D, e.OK = what, []ir.Ref{{Slot: 0}, {Slot: 1}, {Slot: 2}}, ir.Ref{Slot: slot}, ir.Ref{Class: ir.ClassPred}
				m := &machine{lanes: ir.WarpSize, warps: 1, r32: make([]uint32, 4*ir.WarpSize), preds: make([]uint32, maxWarps)}
				for l := range ir.WarpSize {
					m.r32[l], m.r32[ir.WarpSize+l], m.r32[2*ir.WarpSize+l] = uint32(100+l), b, c
				}
				o := newWarpOp(e)
				x := &exchange{lanes: ^uint32(0)}
				o.readSources(m, 0, x)
				o.combine(x)
				if o.fix(map[int]uint32{1: b, 2: c}); o.fixed == nil {
					t.Fatalf("shuffle %d with constant operands %d and %#x is not fixed, want it fixed", what, b, c)
				}
				if err := o.exchange(m, []uint32{^uint32(0)}); err != nil {
					t.Fatal(err)
				}
				if got := [ir.WarpSize]uint32(m.r32[slot*ir.WarpSize:]); got != x.d || m.preds[0] != x.p {
					t.Fatalf("shuffle %d with operands %d and %#x = values %d, predicate %#x, want %d and %#x", what, b, c, got, m.preds[0], x.d, x.p)
				}
			}
		}
	}
}
