package native

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// TestExponentials compares those of gpu/soft/libdevice with the functions that these are
// (TestExponentialsAreThoseOfMachineCode there).
func TestExponentials(t *testing.T) {
	requireProcessor(t)
	for name, f := range map[string]func(float64) float64{"__nv_expf": ops.Exp, "__nv_fast_expf": ops.Exp, "__nv_exp2f": ops.Exp2} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 16))
			o := ops.Operation{Name: name, Loop: func(d, a []uint32) {
				for i, x := range a {
					y := float32(f(float64(math.Float32frombits(x))))
					if d[i] = math.Float32bits(y); y != y {
						d[i] = nan32
					}
				}
			}}
			in := ir.Inst{Op: &ir.Arith{F: o, D: ir.Ref{Slot: 1}, S: []ir.Ref{{Slot: 0}}}}
			for range 20 {
				checkFrom(t, []ir.Inst{in}, false, r, func(f *Files) {
					for l := range testLanes / 2 {
						f.R32[l] = math.Float32bits(float32(r.NormFloat64() * 60))
					}
				})
			}
		})
	}
}
