package native

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

func accessOf(op ir.Op) *ir.Access {
	switch o := op.(type) {
	case *ir.Load:
		return &o.Access
	case *ir.Store:
		return &o.Access
	case *ir.Atomic:
		return &o.Access
	}
	return nil
}

// hasAtomic reports whether a run changes memory by an atomic operation.
func hasAtomic(insts []ir.Inst) bool {
	return slices.ContainsFunc(insts, func(in ir.Inst) bool {
		_, ok := in.Op.(*ir.Atomic)
		return ok
	})
}

// memory returns the memory that a lane accesses, or nil if the code must leave.
func (f *Files) memory(a *ir.Access, l int) []byte {
	at, w := f.lane(a.Base, l)+a.Off, f.Globals[0]
	switch a.Space {
	case ir.Shared:
		at, w = at&(1<<32-1), Window{0, f.Shared}
	case ir.Param:
		at, w = at&(1<<32-1), Window{0, f.Params}
	case ir.Local:
		at, w = at&(1<<32-1), Window{0, f.Local[l*testLocal:][:testLocal]}
	}
	n := a.Size * uint64(a.N)
	if at%n != 0 || at < w.Base || at-w.Base > uint64(len(w.Data)) || uint64(len(w.Data))-(at-w.Base) < n {
		return nil
	}
	return w.Data[at-w.Base:][:n]
}

// allowed reports whether lanes can execute an access together in a run.
func (f *Files) allowed(op ir.Op, a *ir.Access, lanes []int) bool {
	_, store := op.(*ir.Store)
	if _, ok := op.(*ir.Atomic); ok && f.Exclusive == nil && len(lanes) > 0 {
		return false
	}
	seen := map[uint64]bool{}
	for _, l := range lanes {
		at := f.lane(a.Base, l)
		if f.memory(a, l) == nil || store && a.Space <= ir.Global && seen[at] {
			return false
		}
		seen[at] = true
	}
	return true
}

// perform executes an access for some lanes.
func perform(op ir.Op, a *ir.Access, from, to *Files, lanes []int) {
	for _, l := range lanes {
		m := from.memory(a, l)
		if m == nil {
			continue
		}
		if o, ok := op.(*ir.Atomic); ok {
			old := extended(m, false)
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], o.F(old, from.lane(o.B, l), 0))
			copy(m, b[:])
			if o.D != ir.None {
				to.set(o.D, l, old)
			}
			continue
		}
		for i := range a.N {
			element := m[i*int(a.Size):][:a.Size]
			switch o := op.(type) {
			case *ir.Load:
				if o.D[i] != ir.None {
					to.set(o.D[i], l, extended(element, a.Signed)&a.Mask)
				}
			case *ir.Store:
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], from.lane(o.S[i], l))
				copy(element, b[:])
			}
		}
	}
}

func extended(b []byte, signed bool) uint64 {
	var w [8]byte
	copy(w[:], b)
	v, n := binary.LittleEndian.Uint64(w[:]), 64-8*len(b)
	if signed {
		return uint64(int64(v<<n) >> n)
	}
	return v
}

// TestAccesses compares loads and stores at addresses of all patterns.
func TestAccesses(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 5))
		insts := []ir.Inst{randomAccess(r, r.IntN(3) == 0)}
		checkAccess(t, insts, r.IntN(2) == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: access differs from the interpreter", seed)
		}
	}
}

// TestRunsWithAccesses executes accesses between arithmetic.
func TestRunsWithAccesses(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 6))
		var insts []ir.Inst
		for range 1 + r.IntN(30) {
			in := randomInst(r, list)
			if r.IntN(4) == 0 {
				in = randomAccess(r, r.IntN(8) == 0)
			}
			insts = append(insts, in)
		}
		checkAccess(t, insts[:Known(insts)], r.IntN(2) == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: run differs from the interpreter", seed)
		}
	}
}

func randomAccess(r *rand.Rand, store bool) ir.Inst {
	space := []ir.Space{ir.Global, ir.Generic, ir.Shared, ir.Param}[r.IntN(4)]
	a := ir.Access{Space: space, Base: ir.Ref{Class: ir.Class(r.IntN(2)), Slot: r.IntN(testRegs)}, Off: uint64(r.IntN(3)-1) * 16,
		Size: 1 << r.IntN(4), N: 1 << r.IntN(3), Signed: r.IntN(2) == 0, Mask: 1<<64 - 1}
	if r.IntN(2) == 0 {
		a.N = 1
	}
	var regs []ir.Ref
	for _, slot := range r.Perm(testRegs)[:a.N] {
		c := ir.Class(r.IntN(2))
		if a.Size == 8 {
			c = ir.Class64
		}
		regs = append(regs, ir.Ref{Class: c, Slot: slot})
	}
	in := ir.Inst{}
	switch {
	case store && space != ir.Param:
		in.Op = &ir.Store{Access: a, S: regs}
	default:
		if r.IntN(8) == 0 {
			regs[0] = ir.None
		}
		if r.IntN(4) == 0 {
			a.Mask = 0xffff
		}
		in.Op = &ir.Load{Access: a, D: regs}
	}
	if r.IntN(4) == 0 {
		in.Guard = &ir.Pred{Slot: r.IntN(testRegs), Not: r.IntN(2) == 0}
	}
	return in
}

// TestStructures accesses structures of consecutive lanes.
func TestStructures(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 11))
		n, size := []int{2, 4, 2}[seed%3], []uint64{4, 4, 8}[seed%3]
		a := ir.Access{Space: ir.Shared, Base: ir.Ref{Class: ir.Class64}, Size: size, N: n, Mask: 1<<64 - 1}
		var regs []ir.Ref
		for i := range n {
			regs = append(regs, ir.Ref{Class: ir.Class(size / 8), Slot: 1 + i})
		}
		in := ir.Inst{Op: &ir.Load{Access: a, D: regs}}
		if seed/3%2 == 0 {
			in.Op = &ir.Store{Access: a, S: regs}
		}
		checkFrom(t, []ir.Inst{in}, seed/6%2 == 0, r, func(f *Files) {
			for l := range testLanes {
				f.set(a.Base, l, uint64(l*n)*size)
			}
			f.Active[0] |= 0xff
		})
		if t.Failed() {
			t.Fatalf("seed %d: access differs from the interpreter", seed)
		}
	}
}

// TestAtomics executes an atomic operation between arithmetic, at equal and at
// different addresses.
func TestAtomics(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 10))
		op := []string{"add", "and", "or", "xor", "exch", "min", "max"}[seed%7]
		typ := []ptx.Type{ptx.U32, ptx.U64}[seed/7%2]
		c := ir.Class(seed / 7 % 2)
		ref := func(c ir.Class) ir.Ref { return ir.Ref{Class: c, Slot: r.IntN(testRegs)} }
		o := &ir.Atomic{F: ops.UpdateFor(op, typ), What: op + "." + typ.String(), D: ref(c), B: ref(c)}
		o.C = o.B
		if r.IntN(4) == 0 {
			o.D = ir.None
		}
		o.Access = ir.Access{Space: ir.Shared, Base: ref(ir.Class(r.IntN(2))), Off: uint64(r.IntN(3)) * 8, Size: 4 << c, N: 1}
		insts := []ir.Inst{randomInst(r, list), {Op: o}, randomInst(r, list)}
		if r.IntN(3) == 0 {
			insts[1].Guard = &ir.Pred{Slot: r.IntN(testRegs), Not: r.IntN(2) == 0}
		}
		if n := Known(insts); n < len(insts) {
			t.Fatalf("Known stops at instruction %d of %d, %s, want all known", n, len(insts), insts[n].Op.Name())
		}
		checkAccess(t, insts, r.IntN(2) == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: run with an atomic operation differs from the interpreter", seed)
		}
	}
}

// TestGroups executes loads at several offsets from few registers, some of them out of
// bounds.
func TestGroups(t *testing.T) {
	requireProcessor(t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		var insts []ir.Inst
		base := ir.Ref{Class: ir.Class(r.IntN(2)), Slot: 0}
		for i := range 2 + r.IntN(8) {
			in := randomAccess(r, false)
			l := in.Op.(*ir.Load)
			l.Space, l.Base, l.Off = []ir.Space{ir.Global, ir.Shared}[seed%2], base, uint64(int64(r.IntN(64)-16))*4
			l.Size, l.N = 4<<(seed/2%2), 1<<(seed/4%3)
			for len(l.D) < l.N {
				l.D = append(l.D, ir.None)
			}
			l.D = l.D[:l.N]
			for j := range l.D {
				l.D[j] = ir.Ref{Class: ir.Class64, Slot: 1 + (i+j)%(testRegs-1)}
			}
			insts = append(insts, in)
		}
		checkAccess(t, insts, seed%3 == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: grouped loads differ from the interpreter", seed)
		}
	}
}

// TestWarpLoadsOnce changes memory while the tiles of a warp run, by a tile that
// leaves: the others of the warp receive the value that the first has loaded. So do
// lanes whose tile has inactive lanes with other addresses.
func TestWarpLoadsOnce(t *testing.T) {
	requireProcessor(t)
	for _, masked := range []bool{false, true} {
		ref := func(c ir.Class, slot int) ir.Ref { return ir.Ref{Class: c, Slot: slot} }
		load := &ir.Load{Access: ir.Access{Space: ir.Global, Base: ref(ir.Class64, 0), Size: 4, N: 1, Mask: 1<<32 - 1}, D: []ir.Ref{ref(ir.Class32, 0)}}
		code, err := Compile([]ir.Inst{{Op: load}}, Options{Lanes: testLanes, Masked: masked})
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := amd64.Load(code.Code)
		if err != nil {
			t.Fatal(err)
		}
		defer loaded.Close()
		f := newFiles(rand.New(rand.NewPCG(1, 7)))
		for l := range testLanes {
			f.R64[l] = f.Globals[0].Base + 8
			if masked && l%8 == 7 {
				f.R64[l]++
			}
		}
		f.Active[0], f.Active[1] = 0x7f7f7f7f, 0x7f7f7f7f
		first := binary.LittleEndian.Uint32(f.Globals[0].Data[8:])
		c := new(Context)
		f.run(c, loaded.Function(0), 0, 2)
		binary.LittleEndian.PutUint32(f.Globals[0].Data[8:], first+1)
		c.generation -= 64 // as in the same run
		f.run(c, loaded.Function(0), 2, testLanes/8)
		for _, l := range f.lanes(0, testLanes/8, masked) {
			if want := first + uint32(l/32); f.R32[l] != want {
				t.Fatalf("lane %d has loaded %#x, want %#x (masked: %t)", l, f.R32[l], want, masked)
			}
		}
	}
}

// TestWarpLoadsOneAddressOnce has each tile leave after a load of one address, to
// which another block stores meanwhile: all tiles of the warp receive what the first of
// them did, and the next warp the current value.
func TestWarpLoadsOneAddressOnce(t *testing.T) {
	requireProcessor(t)
	here, away := ir.Ref{Class: ir.Class64, Slot: 0}, ir.Ref{Class: ir.Class64, Slot: 1}
	got, other := ir.Ref{Slot: 2}, ir.Ref{Slot: 3}
	load := func(base, d ir.Ref) ir.Inst {
		return ir.Inst{Op: &ir.Load{Access: ir.Access{Space: ir.Global, Base: base, Size: 4, N: 1, Mask: 1<<64 - 1}, D: []ir.Ref{d}}}
	}
	code, err := Compile([]ir.Inst{load(here, got), load(away, other)}, Options{Lanes: testLanes})
	if err != nil {
		t.Fatal(err)
	}
	c, err := amd64.Load(code.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f := newFiles(rand.New(rand.NewPCG(1, 15)))
	word := Window{1 << 32, []byte{1, 0, 0, 0}}
	f.Globals = []Window{word, {}}
	for l := range testLanes {
		f.set(here, l, word.Base)
		f.set(away, l, 1<<40)
	}
	context := new(Context)
	context.Bind(f)
	for tile := range testLanes / ir.Tile {
		if at, inst := context.Run(c.Function(0), 2, f.Active, f.Globals, tile, testLanes/ir.Tile, tile > 0); at != tile || inst != 1 {
			t.Fatalf("run from tile %d left at tile %d, instruction %d, want tile %d, instruction 1", tile, at, inst, tile)
		}
		word.Data[0]++
	}
	for l := range testLanes {
		if v, want := f.R32[got.Slot*testLanes+l], uint32(1+l/ir.WarpSize*ir.WarpSize/ir.Tile); v != want {
			t.Errorf("lane %d has loaded %d, want %d", l, v, want)
		}
	}
}
