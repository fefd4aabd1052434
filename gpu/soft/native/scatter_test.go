package native

import (
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// TestScattered executes loads and stores of lanes at random addresses in memory, some
// of them equal, and some, occasionally, invalid.
func TestScattered(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(240) {
		r := rand.New(rand.NewPCG(seed, 12))
		in := randomAccess(r, seed%2 == 0)
		a := accessOf(in.Op)
		if a.Space == ir.Param {
			a.Space = ir.Shared
		}
		places := []int{8, 16, 256}[r.IntN(3)]
		checkFrom(t, []ir.Inst{in}, r.IntN(2) == 0, r, func(f *Files) {
			size := a.Size * uint64(a.N)
			for l := range testLanes {
				at := uint64(r.IntN(min(places, 256/int(size)))) * size
				if a.Space <= ir.Global {
					at += f.Globals[0].Base
				}
				switch r.IntN(400) {
				case 0:
					at++
				case 1:
					at += 1 << (8 + r.IntN(56))
				}
				f.set(a.Base, l, at-a.Off)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d: access differs from the interpreter", seed)
		}
	}
}

// TestGroupsApart executes loads at several offsets from random addresses.
func TestGroupsApart(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 15))
		space, size := []ir.Space{ir.Global, ir.Shared}[seed%2], uint64(1)<<(seed/2%4)
		base := ir.Ref{Class: ir.Class64}
		var insts []ir.Inst
		for slot := range testRegs - 1 {
			a := ir.Access{Space: space, Base: base, Off: uint64(r.IntN(9)-4) * size, Size: size, N: 1, Signed: slot%2 == 0, Mask: 1<<64 - 1}
			insts = append(insts, ir.Inst{Op: &ir.Load{Access: a, D: []ir.Ref{{Class: ir.Class64, Slot: 1 + slot}}}})
		}
		checkFrom(t, insts, false, r, func(f *Files) {
			for l := range testLanes {
				at := 32 + uint64(r.IntN(24))*8
				if space == ir.Global {
					at += f.Globals[0].Base
				}
				if r.IntN(300) == 0 {
					at += 1 << r.IntN(40)
				}
				f.set(base, l, at)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d: grouped loads differ from the interpreter", seed)
		}
	}
}
