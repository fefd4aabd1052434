package native

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// TestMultiplyAddOfHalves compares the operations whose sum must not be rounded twice
// with gpu/soft/ops, for sums that are a tie of the rounding to 16 bits but for a small
// addend.
func TestMultiplyAddOfHalves(t *testing.T) {
	requireProcessor(t)
	for _, o := range candidates() {
		if !strings.HasPrefix(o.Name, "fma.rn") || !strings.Contains(o.Name, "f16") {
			continue
		}
		r := rand.New(rand.NewPCG(7, 16))
		a := &ir.Arith{F: o, D: ir.Ref{Slot: 4}, S: []ir.Ref{{Slot: 1}, {Slot: 2}, {Slot: 3}}}
		for range 20 {
			start := newFiles(r)
			for l := range testLanes {
				start.R32[1*testLanes+l], start.R32[2*testLanes+l] = tieFactors(o, r)
				start.R32[3*testLanes+l] = randomHalf(r) | randomHalf(r)<<16
			}
			want, got := start.clone(), start.clone()
			interpret([]ir.Inst{{Op: a}}, want, want.lanes(0, testLanes/8, false))
			runOnce(t, a, got)
			for l := range testLanes {
				if w, g := want.lane(a.D, l), got.lane(a.D, l); w != g {
					t.Fatalf("%s of %#x, %#x and %#x = %#x, want %#x", o, start.lane(a.S[0], l), start.lane(a.S[1], l), start.lane(a.S[2], l), g, w)
				}
			}
		}
	}
}

// tieFactors returns factors of which most products are in the middle between two
// numbers of 16 bits: one and some last bits, times one and a half.
func tieFactors(o ops.Operation, r *rand.Rand) (x, y uint32) {
	one, middle := uint32(0x3c00), uint32(0x3e00)
	if strings.Contains(o.Name, "bf16") {
		one, middle = 0x3f80, 0x3fc0
	}
	half := func() uint32 { return (one + uint32(r.IntN(64)) ^ uint32(r.IntN(2))<<15) & 0xffff }
	return half() | half()<<16, middle | middle<<16
}

// runOnce compiles one instruction and executes it for all lanes.
func runOnce(t *testing.T, a *ir.Arith, f *Files) {
	t.Helper()
	made, err := Compile([]ir.Inst{{Op: a}}, Options{Lanes: testLanes})
	if err != nil {
		t.Fatal(err)
	}
	code, err := amd64.Load(made.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	f.run(new(Context), code.Function(0), 0, testLanes/8)
}
