package native

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// again is the predicate of the test's loops, which their instructions do not write.
var again = ir.Pred{Slot: testRegs - 1}

const (
	addresses = 3 // number of registers of 64 bits, from the first one on, that have addresses
	turnsMost = 4 // the maximum that Files.run allows a tile
)

// TestLoops compares loops with turns of the interpreter. The code may choose how many
// turns a tile executes, as long as all of its lanes continue; the state after it must
// be that after as many turns of the interpreter.
func TestLoops(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	took := map[int]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 12))
		insts := randomTurn(r, list)
		o := Options{Lanes: testLanes, Masked: seed%3 == 0, Loop: &Loop{Again: again}}
		if seed%4 > 0 {
			o.Expect = []Kind{equal, consecutive, inside, Unknown, equal, consecutive}[r.IntN(3):]
		}
		f, err := Compile(insts, o)
		if err != nil {
			t.Fatal(err)
		}
		code, err := amd64.Load(f.Code)
		if err != nil {
			t.Fatal(err)
		}
		want := newFiles(r)
		want.pointInside(r)
		got := want.clone()
		if tile, _ := got.run(new(Context), code.Function(0), 0, testLanes/8); tile != testLanes/8 {
			t.Fatalf("seed %d: tile %d has left, want all tiles to execute the loop", seed, tile)
		}
		for tile := range testLanes / 8 {
			took[turnsOf(t, insts, want, got, tile, o.Masked)]++
		}
		_ = code.Close()
		if t.Failed() {
			t.Fatalf("seed %d: loop differs from the interpreter", seed)
		}
	}
	if took[turnsMost] < 300 || took[1] < 100 || took[2]+took[3] == 0 {
		t.Errorf("tiles by number of turns = %v, want at least 300 with the maximum, 100 with one and some between", took)
	}
}

// randomTurn returns loads and arithmetic, which may increase each address by 16 bytes.
func randomTurn(r *rand.Rand, list []ops.Operation) (insts []ir.Inst) {
	for slot := range addresses {
		if a := address64(slot); r.IntN(2) == 0 {
			insts = append(insts, ir.Inst{Op: &ir.Arith{F: ops.Plus(16), D: a, S: []ir.Ref{a}}})
		}
	}
	for range 4 + r.IntN(16) {
		in := randomInst(r, list)
		if r.IntN(3) == 0 {
			in = randomAccess(r, false)
			l, slot := in.Op.(*ir.Load), r.IntN(addresses)
			l.Space, l.Base, l.Off = ir.Global, address64(slot), uint64(r.IntN(2))*32
			l.N = min(l.N, int(16/l.Size))
			l.D = l.D[:l.N]
			switch slot {
			case 0:
				l.Space = ir.Shared
			case addresses - 1: // four bytes apart
				l.Size, l.N, l.D = 4, 1, l.D[:1]
			}
		}
		results, _ := in.Op.Registers()
		if !slices.ContainsFunc(results, func(d ir.Ref) bool { return d == again.Ref() || d.Class == ir.Class64 && d.Slot < addresses }) {
			insts = append(insts, in)
		}
	}
	r.Shuffle(len(insts), func(i, j int) { insts[i], insts[j] = insts[j], insts[i] })
	return insts
}

func address64(slot int) ir.Ref { return ir.Ref{Class: ir.Class64, Slot: slot} }

// pointInside sets the first registers to addresses that are in memory also a few turns
// later, the very first to those of shared memory, and lets most lanes continue.
func (f *Files) pointInside(r *rand.Rand) {
	for slot := range addresses {
		base, stride, somewhere := uint64(0), uint64(r.IntN(2))*16, r.IntN(3) == 0
		if slot > 0 {
			base = f.Globals[0].Base + uint64(r.IntN(4))*16
		}
		for l := range testLanes {
			v := base + stride*uint64(l%8)
			switch {
			case slot == addresses-1 && stride > 0:
				v = base + 4*uint64(l%8)
			case somewhere:
				v = base + uint64(r.IntN(6))*16
			}
			f.set(address64(slot), l, v)
		}
	}
	for w := range testLanes / 32 {
		f.Preds[again.Slot*32+w] = ^uint32(0)
		if r.IntN(2) == 0 {
			f.Preds[again.Slot*32+w] &^= 1 << r.IntN(32)
		}
		if r.IntN(2) == 0 {
			f.Active[w] = ^uint32(0)
		}
	}
}

// turnsOf returns after how many turns of the interpreter want equals got in a tile.
func turnsOf(t *testing.T, insts []ir.Inst, want, got *Files, tile int, masked bool) int {
	t.Helper()
	lanes := want.lanes(tile, tile+1, masked)
	for n := 1; n <= turnsMost; n++ {
		if !interpret(insts, want, lanes) {
			t.Errorf("tile %d: the code has not left at an access that is not allowed in a run", tile)
			return 0
		}
		if sameLanes(want, got, tile) {
			return n
		}
		for _, l := range lanes {
			if want.pred(again, l) == 0 {
				n = turnsMost
			}
		}
		if len(lanes) < 8 {
			break
		}
	}
	t.Errorf("tile %d equals the interpreter's after no number of turns from 1 to %d", tile, turnsMost)
	return 0
}

func sameLanes(want, got *Files, tile int) bool {
	for c := range ir.ClassPred + 1 {
		for s := range testRegs {
			for l := tile * 8; l < tile*8+8; l++ {
				if r := (ir.Ref{Class: c, Slot: s}); want.lane(r, l) != got.lane(r, l) {
					return false
				}
			}
		}
	}
	return true
}
