package native

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// copyWords executes a CopyWord for some lanes.
func copyWords(o *ir.CopyWord, from, to *Files, lanes []int) {
	for _, l := range lanes {
		w := o.From
		if o.To.Reg == ir.None {
			w = o.To
		}
		m := from.Local[l*testLocal+int(w.Local):][:8]
		if w.Half {
			m = m[:4]
		}
		if o.To.Reg != ir.None {
			to.set(o.To.Reg, l, extended(m, false))
			continue
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], from.lane(o.From.Reg, l))
		copy(m, b[:])
	}
}

// TestLocal executes loads and stores of local memory and copies of words, in any
// order, between other accesses and arithmetic.
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
			case ir.Global:
				in.Op = randomWord(r)
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
			t.Fatalf("seed %d: run with local memory differs from the interpreter", seed)
		}
	}
}

// pointLocal sets a register to addresses of local memory, the same in all lanes or
// several, and occasionally to invalid ones.
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

func randomWord(r *rand.Rand) ir.Op {
	reg := ir.Word{Reg: ir.Ref{Class: ir.Class(r.IntN(2)), Slot: r.IntN(testRegs)}}
	local := ir.Word{Reg: ir.None, Local: 4 * uint32(r.IntN(testLocal/4-1)), Half: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		return &ir.CopyWord{To: reg, From: local}
	}
	return &ir.CopyWord{To: local, From: reg}
}

// TestLocalStoredOnce has a tile leave after a change of local memory, which would be
// wrong if the tile began again.
func TestLocalStoredOnce(t *testing.T) {
	requireProcessor(t)
	word, address := ir.Ref{Slot: 1}, ir.Ref{Slot: 2}
	one := ops.Plus(1)
	d, _, _ := ir.ShapeOf(one.Loop)
	wide := ir.Ref{Class: d, Slot: 1}
	local := ir.Access{Space: ir.Local, Base: ir.Ref{Slot: 3}, Size: 8, N: 1, Mask: 1<<64 - 1}
	place := ir.Word{Reg: ir.None, Local: 8}
	beyond := ir.Inst{Op: &ir.Load{Access: ir.Access{Space: ir.Shared, Base: address, Size: 4, N: 1, Mask: 1<<32 - 1}, D: []ir.Ref{word}}}
	plus := ir.Inst{Op: &ir.Arith{F: one, D: wide, S: []ir.Ref{wide}}}
	for name, insts := range map[string][]ir.Inst{
		"ld and st":   {{Op: &ir.Load{Access: local, D: []ir.Ref{wide}}}, plus, {Op: &ir.Store{Access: local, S: []ir.Ref{wide}}}, beyond},
		"copied word": {{Op: &ir.CopyWord{To: ir.Word{Reg: wide}, From: place}}, plus, {Op: &ir.CopyWord{To: place, From: ir.Word{Reg: wide}}}, beyond},
	} {
		t.Run(name, func(t *testing.T) {
			if n := Known(insts); n != len(insts) {
				t.Fatalf("Known stops at instruction %d of %d, %s, want all known", n, len(insts), insts[n].Op.Name())
			}
			checkFrom(t, insts, false, rand.New(rand.NewPCG(1, 14)), func(f *Files) {
				for l := range testLanes {
					f.set(local.Base, l, 16)
					f.set(address, l, 1<<20)
				}
			})
		})
	}
}
