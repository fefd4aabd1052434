package native

import (
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// TestLocal has loads and stores of local memory, in any order, between other accesses
// and arithmetic.
func TestLocal(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	for seed := range uint64(240) {
		r := rand.New(rand.NewPCG(seed, 13))
		var insts []ir.Inst
		for range 1 + r.IntN(12) {
			in := randomAccess(r, r.IntN(2) == 0)
			a := accessOf(in.Op)
			switch a.Space {
			case ir.Param:
				in = randomInst(r, list)
			case ir.Generic:
				a.Space = ir.Local
			}
			insts = append(insts, in)
		}
		insts = insts[:Known(insts)]
		places := 1 + r.IntN(2)
		checkFrom(t, insts, r.IntN(2) == 0, r, func(f *Files) {
			f.point(r)
			for i := range insts {
				if a := accessOf(insts[i].Op); a != nil && a.Space == ir.Local {
					f.pointLocal(a, places, r)
				}
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// pointLocal makes a register addresses of local memory, of the same place in all lanes
// or of several, and now and then of none.
func (f *Files) pointLocal(a *ir.Access, places int, r *rand.Rand) {
	size := a.Size * uint64(a.N)
	for l := range testLanes {
		at := uint64(r.IntN(min(places, testLocal/int(size)))) * size
		switch r.IntN(500) {
		case 0:
			at++
		case 1:
			at = testLocal
		}
		f.set(a.Base, l, at-a.Off)
	}
}

// TestLocalStoredOnce has a tile leave behind a change of local memory, which would be
// another one if the tile began again.
func TestLocalStoredOnce(t *testing.T) {
	requireProcessor(t)
	word, address := ir.Ref{Slot: 1}, ir.Ref{Slot: 2}
	one := ops.Plus(1)
	d, _, _ := ir.ShapeOf(one.Loop)
	wide := ir.Ref{Class: d, Slot: 1}
	local := ir.Access{Space: ir.Local, Base: ir.Ref{Slot: 3}, Size: 8, N: 1, Mask: 1<<64 - 1}
	beyond := ir.Inst{Op: &ir.Load{Access: ir.Access{Space: ir.Shared, Base: address, Size: 4, N: 1, Mask: 1<<32 - 1}, D: []ir.Ref{word}}}
	plus := ir.Inst{Op: &ir.Arith{F: one, D: wide, S: []ir.Ref{wide}}}
	insts := []ir.Inst{{Op: &ir.Load{Access: local, D: []ir.Ref{wide}}}, plus, {Op: &ir.Store{Access: local, S: []ir.Ref{wide}}}, beyond}
	if n := Known(insts); n != len(insts) {
		t.Fatalf("%s is not known", insts[n].Op.Name())
	}
	checkFrom(t, insts, false, rand.New(rand.NewPCG(1, 14)), func(f *Files) {
		for l := range testLanes {
			f.set(local.Base, l, 16)
			f.set(address, l, 1<<20)
		}
	})
}
