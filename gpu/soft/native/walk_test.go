package native

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Registers of the test's loops: an index and its increment, constants, and addresses.
var (
	walkIndex32 = ir.Ref{Slot: 7}
	walkMore    = ir.Ref{Slot: 6}
	walkFactor  = ir.Ref{Slot: 5}
	walkBase    = address64(7)
	walkAt      = address64(6)
	walkPointer = address64(5)
	walkMore64  = address64(4)
	walkWide    = address64(3)
)

// walkCase is a loop with loads whose addresses change from turn to turn.
type walkCase struct {
	r      *rand.Rand
	insts  []ir.Inst
	factor uint32
	signed bool
	expect []Kind
}

func (c *walkCase) arith(name string, d ir.Ref, s ...ir.Ref) {
	c.insts = append(c.insts, ir.Inst{Op: &ir.Arith{F: ops.Operation{Name: name, Loop: ops.Operations()[name]}, D: d, S: s}})
}

func (c *walkCase) loads(base ir.Ref) {
	off := uint64(c.r.IntN(3)) * 16
	n := []int{1, 2, 4, 4}[c.r.IntN(4)]
	for i := range n {
		a := ir.Access{Space: ir.Global, Base: base, Off: off + 4*uint64(i), Size: 4, N: 1, Mask: 1<<64 - 1}
		in := ir.Inst{Op: &ir.Load{Access: a, D: []ir.Ref{{Slot: c.r.IntN(4)}}}}
		if c.r.IntN(20) == 0 {
			in.Guard = &ir.Pred{Slot: 1}
		}
		c.insts = append(c.insts, in)
		if c.r.IntN(2) == 0 {
			c.arith("add.u32", ir.Ref{Slot: c.r.IntN(4)}, ir.Ref{Slot: c.r.IntN(4)}, ir.Ref{Slot: c.r.IntN(4)})
		}
	}
}

// move increments the index, or the pointer.
func (c *walkCase) move() {
	switch c.r.IntN(6) {
	case 0:
		c.arith("sub.u32", walkIndex32, walkIndex32, walkMore)
	case 1: // in two steps, by way of another register
		c.arith("add.u32", ir.Ref{Slot: 4}, walkMore, walkIndex32)
		c.arith("mov.u32", walkIndex32, ir.Ref{Slot: 4})
		c.arith("add.s32", walkIndex32, walkIndex32, walkFactor)
	case 2:
		c.insts = append(c.insts, ir.Inst{Op: &ir.Arith{F: ops.Plus(16), D: walkPointer, S: []ir.Ref{walkPointer}}})
	case 3:
		c.arith("add.s64", walkPointer, walkPointer, walkMore64)
	default:
		c.arith("add.u32", walkIndex32, walkIndex32, walkMore)
	}
	if c.r.IntN(12) == 0 {
		c.insts[len(c.insts)-1].Guard = &ir.Pred{Slot: 1}
	}
}

// address computes an address from the index.
func (c *walkCase) address() {
	t := map[bool]string{false: "u32", true: "s32"}[c.signed]
	switch c.r.IntN(4) {
	case 0:
		c.arith("mad.wide."+t, walkAt, walkIndex32, walkFactor, walkBase)
	case 1:
		c.arith("cvt.u64."+t, walkWide, walkIndex32)
		c.arith("mul.lo.u64", walkWide, walkWide, address64(2))
		c.arith("add.u64", walkAt, walkBase, walkWide)
	default:
		c.arith("mul.wide."+t, walkWide, walkIndex32, walkFactor)
		c.arith("add.s64", walkAt, walkBase, walkWide)
	}
}

func newWalkCase(seed uint64) *walkCase {
	r := rand.New(rand.NewPCG(seed, 19))
	c := &walkCase{r: r, factor: []uint32{4, 4, 4, 16, 8, 2}[r.IntN(6)], signed: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		c.move()
	}
	for range 1 + r.IntN(3) {
		if r.IntN(3) > 0 {
			c.address()
			c.loads(walkAt)
		} else {
			c.loads(walkPointer)
		}
		if r.IntN(3) == 0 {
			c.move()
		}
	}
	c.move()
	for range 4 {
		c.expect = append(c.expect, []Kind{equal, consecutive, inside, inside}[r.IntN(4)])
	}
	return c
}

// fill returns files whose addresses are in memory for some turns.
func (c *walkCase) fill() *Files {
	f, r := newFiles(c.r), c.r
	data, base := len(f.Globals[0].Data), f.Globals[0].Base
	for tile := range testLanes / ir.Tile {
		stride := []uint32{0, 1, 1, 1, 2}[r.IntN(5)]
		first := []uint32{0, 3, 1 << 31, 1<<31 - 9, ^uint32(0) - 11, ^uint32(0) - 30, uint32(r.IntN(99))}[r.IntN(7)]
		more := []uint32{1, 2, 4, ^uint32(0), 8, 3}[r.IntN(6)]
		at := base + uint64(r.IntN(data/2)/16*16)
		for l := tile * ir.Tile; l < (tile+1)*ir.Tile; l++ {
			i := first + stride*uint32(l%ir.Tile)
			f.set(walkIndex32, l, uint64(i))
			f.set(walkMore, l, uint64(more))
			f.set(walkFactor, l, uint64(c.factor))
			f.set(address64(2), l, uint64(c.factor))
			wide := uint64(first)
			if c.signed {
				wide = uint64(int64(int32(first)))
			}
			f.set(walkBase, l, at-wide*uint64(c.factor))
			f.set(walkPointer, l, at+uint64(stride)*4*uint64(l%ir.Tile))
			f.set(walkMore64, l, []uint64{4, 16, ^uint64(15), 32}[first%4])
		}
		if r.IntN(6) == 0 { // one lane has another value
			odd := []ir.Ref{walkIndex32, walkMore, walkMore64, walkPointer}[r.IntN(4)]
			l := tile*ir.Tile + r.IntN(ir.Tile)
			f.set(odd, l, f.lane(odd, l)+4)
		}
	}
	for w := range testLanes / ir.WarpSize {
		f.Preds[again.Slot*32+w], f.Active[w] = ^uint32(0), ^uint32(0)
		f.Preds[32+w] = []uint32{0, ^uint32(0), r.Uint32()}[r.IntN(3)]
	}
	return f
}

// TestWalks compares loops whose addresses are examined once with turns of the
// interpreter: indices that wrap around, steps that differ between lanes, lanes whose
// addresses have another pattern than expected, and addresses that leave memory after
// some turns.
func TestWalks(t *testing.T) {
	requireProcessor(t)
	walks, quads, left, took := 0, 0, 0, map[int]int{}
	for seed := range uint64(500) {
		c := newWalkCase(seed)
		known := func(r ir.Ref) (uint64, bool) {
			return uint64(c.factor), r == walkFactor || r == address64(2)
		}
		o := Options{Lanes: testLanes, Expect: c.expect, Live: c.live, Constant: known, Loop: &Loop{Again: again}}
		f, err := newFunction(c.insts, o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		last := f.bodies[len(f.bodies)-1]
		walks, quads = walks+len(last.cycle.walks), quads+len(last.quads)
		made, err := f.assemble()
		if err != nil {
			t.Fatal(err)
		}
		code, err := amd64.Load(made)
		if err != nil {
			t.Fatal(err)
		}
		want := c.fill()
		got := want.clone()
		exits := map[int]int{}
		context := new(Context)
		for from := 0; from < testLanes/ir.Tile; {
			tile, inst := got.run(context, code.Function(0), from, testLanes/ir.Tile)
			if from = tile; tile < testLanes/ir.Tile {
				exits[tile] = inst
				left++
				from++
			}
		}
		for tile := range testLanes / ir.Tile {
			inst, ok := exits[tile]
			if !ok {
				inst = -1
			}
			took[c.turns(t, want, got, tile, inst)]++
		}
		_ = code.Close()
		if t.Failed() {
			t.Fatalf("seed %d: loop differs from the interpreter", seed)
		}
	}
	t.Logf("%d walks, %d loads of four, %d tiles left; turns %v", walks, quads, left, took)
	if walks < 500 || quads < 150 || left < 300 || took[turnsMost]+took[turnsInMemory] < 800 {
		t.Errorf("%d walks, %d loads of four, %d tiles have left, tiles by number of turns %v: want at least 500, 150, 300, and 800 with a maximum", walks, quads, left, took)
	}
}

// turns returns after how many turns of the interpreter, and instructions of one more,
// want equals got in a tile.
func (c *walkCase) turns(t *testing.T, want, got *Files, tile, inst int) int {
	t.Helper()
	lanes := want.lanes(tile, tile+1, false)
	for n := 0; n <= turnsInMemory; n++ {
		state := want
		if inst > 0 {
			state = want.clone()
			interpret(c.insts[:inst], state, lanes)
		}
		if (inst >= 0 || n > 0) && c.same(state, got, tile, inst) {
			return n
		}
		if !interpret(c.insts, want, lanes) {
			break
		}
	}
	t.Errorf("tile %d, which has left at instruction %d, equals the interpreter's after no number of turns up to %d", tile, inst, turnsInMemory)
	return 0
}

// live reports whether a register may be read after an instruction.
func (c *walkCase) live(inst int, r ir.Ref) bool {
	for _, in := range c.insts[inst:] {
		results, sources := in.Op.Registers()
		switch {
		case slices.Contains(sources, r) || in.Guard != nil && (in.Guard.Ref() == r || slices.Contains(results, r)):
			return true
		case slices.Contains(results, r):
			return false
		}
	}
	return true
}

// same compares the registers of a tile that may be read.
func (c *walkCase) same(want, got *Files, tile, inst int) bool {
	for class := range ir.ClassPred + 1 {
		for s := range testRegs {
			for l := tile * ir.Tile; l < (tile+1)*ir.Tile; l++ {
				if r := (ir.Ref{Class: class, Slot: s}); (inst < 0 || c.live(inst, r)) && want.lane(r, l) != got.lane(r, l) {
					return false
				}
			}
		}
	}
	return true
}

// TestSteps finds the walks of loops whose addresses change by one step, and of others.
func TestSteps(t *testing.T) {
	c := &walkCase{}
	c.arith("mul.wide.u32", walkWide, walkIndex32, walkFactor)
	c.arith("add.s64", walkAt, walkBase, walkWide)
	c.arith("add.u32", walkIndex32, walkIndex32, walkMore)
	known := func(r ir.Ref) (uint64, bool) { return 4, r == walkFactor }
	w := turn{c.insts, known}.walkOf(walkAt, 2)
	if w == nil || w.step.k != 0 || len(w.step.terms) != 1 || w.step.terms[0] != (term{walkMore, 4}) || len(w.widens) != 1 || !slices.Equal(w.slice, []int{0, 1}) {
		t.Errorf("walk of an index that increases by a register = %+v, want one term, walkMore times 4", w)
	}
	c.arith("mul.lo.u32", walkMore, walkMore, walkFactor)
	if w := (turn{c.insts, known}).walkOf(walkAt, 2); w != nil {
		t.Errorf("walk of an index whose step changes = %+v, want none", w)
	}
	c.insts = c.insts[:3]
	c.insts[2].Guard = &ir.Pred{}
	if w := (turn{c.insts, known}).walkOf(walkAt, 2); w != nil {
		t.Errorf("walk of an index that changes in some lanes only = %+v, want none", w)
	}
	c.insts = c.insts[:2]
	if w := (turn{c.insts, known}).walkOf(walkAt, 2); w == nil || w.step.k != 0 || len(w.step.terms) > 0 {
		t.Errorf("walk of an index that does not change = %+v, want a step of 0", w)
	}
}
