package native

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/libdevice"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

const (
	testLanes = 64
	testRegs  = 8
	testLocal = 48
)

// interesting32 are values that operations treat specially.
var interesting32 = []uint32{
	0, 1, 2, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xffff, 0x8000, 0x7fff, 0x10000, 0xffffff, 0x1000000,
	0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe, // integers, and NaNs
	0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffbfffff, // 1, infinities, NaNs
	0x00800000, 0x80800000, 0x007fffff, 0x807fffff, 0x00000001, 0x00400000, 0x7f7fffff, 0xff7fffff, // around subnormal numbers and the greatest
	0x3effffff, 0x3f000000, 0x3f000001, 0x4b000000, 0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0x33800000, 0x34000000,
}

func random32(r *rand.Rand) uint32 {
	switch r.IntN(6) {
	case 0:
		return interesting32[r.IntN(len(interesting32))]
	case 1:
		return math.Float32bits(float32(r.NormFloat64()))
	case 2:
		return r.Uint32() >> r.IntN(32)
	case 3:
		return randomHalf(r) | randomHalf(r)<<16
	case 4: // around the zeros of a sine, which may be far from 0
		return math.Float32bits(float32(math.Pi/2*float64(r.IntN(2<<r.IntN(30))))) + uint32(r.IntN(3)) - 1
	}
	return r.Uint32()
}

// randomHalf returns an f16 or bf16 with few bits set, near 1 or at the ends of the
// range, so that sums of products are often ties of the rounding.
func randomHalf(r *rand.Rand) uint32 {
	fraction := uint32(1)<<r.IntN(8) | uint32(r.IntN(2))<<r.IntN(8)
	base := []uint32{0, 0x80, 0x400, 0x3c00, 0x3f80, 0x7b00, 0x7c00, 0x7f00, 0x7f80, 0x2000}[r.IntN(10)]
	return (base + fraction ^ uint32(r.IntN(2))<<15) & 0xffff
}

func random64(r *rand.Rand) uint64 {
	switch r.IntN(5) {
	case 0:
		x := math.Float64bits(float64(math.Float32frombits(interesting32[r.IntN(len(interesting32))])))
		return x + uint64(r.IntN(3)) - 1
	case 1:
		return math.Float64bits(r.NormFloat64() * math.Pow(2, float64(r.IntN(600)-300)))
	case 2:
		return r.Uint64() >> r.IntN(64)
	case 3:
		return uint64(int64(int32(random32(r))))
	}
	return r.Uint64()
}

func newFiles(r *rand.Rand) *Files {
	f := &Files{
		R32: make([]uint32, testRegs*testLanes), R64: make([]uint64, testRegs*testLanes),
		Preds: make([]uint32, testRegs*32), Active: make([]uint32, testLanes/32),
	}
	for i := range f.R32 {
		f.R32[i], f.R64[i] = random32(r), random64(r)
	}
	for i := range f.Preds {
		f.Preds[i] = r.Uint32()
	}
	for i := range f.Active {
		f.Active[i] = r.Uint32() & r.Uint32()
	}
	f.Shared, f.Params, f.Local = make([]byte, 256), make([]byte, 64), make([]byte, testLocal*testLanes)
	if r.IntN(4) > 0 {
		f.Exclusive = f.Shared
	}
	global := Window{0x7f0000001000 * uint64(r.IntN(2)), make([]byte, 512)}
	f.Globals = slices.Repeat([]Window{global}, maxGlobals)
	for _, m := range [][]byte{global.Data, f.Shared, f.Params, f.Local} {
		for i := range m {
			m[i] = byte(r.Uint32())
		}
	}
	if r.IntN(2) == 0 {
		f.Active[0] &^= 0xff00
	}
	return f
}

// run executes a function on the files.
func (f *Files) run(c *Context, code amd64.Function, from, to int) (tile, inst int) {
	c.Bind(f)
	return c.Run(code, 1000, f.Active, f.Globals, from, to, false)
}

func (f *Files) clone() *Files {
	global := Window{f.Globals[0].Base, slices.Clone(f.Globals[0].Data)}
	c := &Files{
		slices.Clone(f.R32), slices.Clone(f.R64), slices.Clone(f.Preds), slices.Clone(f.Active),
		slices.Repeat([]Window{global}, maxGlobals), slices.Clone(f.Shared), slices.Clone(f.Params), slices.Clone(f.Local), nil,
	}
	if f.Exclusive != nil {
		c.Exclusive = c.Shared
	}
	return c
}

// lane returns the value of a register in a lane.
func (f *Files) lane(r ir.Ref, l int) uint64 {
	switch r.Class {
	case ir.Class32:
		return uint64(f.R32[r.Slot*testLanes+l])
	case ir.Class64:
		return f.R64[r.Slot*testLanes+l]
	}
	return uint64(f.Preds[r.Slot*32+l/32] >> (l % 32) & 1)
}

func (f *Files) set(r ir.Ref, l int, v uint64) {
	switch r.Class {
	case ir.Class32:
		f.R32[r.Slot*testLanes+l] = uint32(v)
	case ir.Class64:
		f.R64[r.Slot*testLanes+l] = v
	default:
		w := &f.Preds[r.Slot*32+l/32]
		*w = *w&^(1<<(l%32)) | uint32(v)<<(l%32)
	}
}

// lanes returns the active lanes of some tiles.
func (f *Files) lanes(from, to int, masked bool) (list []int) {
	for l := from * 8; l < to*8; l++ {
		if !masked || f.Active[l/32]>>(l%32)&1 != 0 {
			list = append(list, l)
		}
	}
	return list
}

// interpret executes instructions one after another, each for some lanes, and reports
// whether all accesses are allowed in a run. Those that are not have no effect.
func interpret(insts []ir.Inst, f *Files, lanes []int) (allowed bool) {
	allowed = true
	for i := range insts {
		in := &insts[i]
		results, _ := in.Op.Registers()
		after := f.clone()
		active := f.guarded(in, lanes)
		if o, ok := in.Op.(*ir.CopyWord); ok {
			copyWords(o, f, after, active)
		} else if a := accessOf(in.Op); a != nil {
			allowed = allowed && f.allowed(in.Op, a, active)
			perform(in.Op, a, f, after, active)
		} else {
			compute(in.Op, f, after)
		}
		for _, l := range active {
			for _, r := range results {
				f.set(r, l, after.lane(r, l))
			}
		}
	}
	return allowed
}

// guarded returns the lanes for which the guard of an instruction is true.
func (f *Files) guarded(in *ir.Inst, lanes []int) (list []int) {
	for _, l := range lanes {
		if g := in.Guard; g == nil || (f.lane(g.Ref(), l) == 1) != g.Not {
			list = append(list, l)
		}
	}
	return list
}

// compute executes an operation for all lanes.
func compute(op ir.Op, from, to *Files) {
	switch o := op.(type) {
	case *ir.Arith:
		loop(o, from, to)
	case *ir.Select:
		for l := range testLanes {
			if (from.lane(o.P.Ref(), l) == 1) != o.P.Not {
				to.set(o.D, l, from.lane(o.A, l))
			} else {
				to.set(o.D, l, from.lane(o.B, l))
			}
		}
	case *ir.Convert:
		for l := range testLanes {
			to.set(o.D, l, o.F.Convert(from.lane(o.S, l))&o.Keep)
		}
	case *ir.Pack:
		for l := range testLanes {
			v := uint64(0)
			for i, s := range o.S {
				v |= from.lane(s, l) & (1<<o.Each - 1) << (i * o.Each)
			}
			to.set(o.D, l, v)
		}
	case *ir.Unpack:
		for l := range testLanes {
			for i, d := range o.D {
				if d != ir.None {
					to.set(d, l, from.lane(o.S, l)>>(i*o.Each)&(1<<o.Each-1))
				}
			}
		}
	case *ir.Logic:
		f := ops.Bitwise(o.F)
		for l := range testLanes {
			to.set(o.D, l, uint64(f(from.pred(o.A, l), from.pred(o.B, l))&1))
		}
	case *ir.LogicPair:
		f := ops.Bitwise(o.F)
		for l := range testLanes {
			a, b := from.pred(ir.PredOf(o.A, false), l), from.pred(o.B, l)
			if o.P != ir.None {
				to.set(o.P, l, uint64(f(a, b)&1))
			}
			if o.Q != ir.None {
				to.set(o.Q, l, uint64(f(a^1, b)&1))
			}
		}
	}
}

func (f *Files) pred(p ir.Pred, l int) uint32 {
	v := uint32(f.lane(p.Ref(), l))
	if p.Not {
		v ^= 1
	}
	return v
}

// loop calls the loop of gpu/soft/ops.
func loop(o *ir.Arith, from, to *Files) {
	a := make([][]uint32, len(o.S)+1)
	b := make([][]uint64, len(o.S)+1)
	for i, r := range append([]ir.Ref{o.D}, o.S...) {
		f := from
		if i == 0 {
			f = to
		}
		switch r.Class {
		case ir.Class32:
			a[i] = f.R32[r.Slot*testLanes:][:testLanes]
		case ir.Class64:
			b[i] = f.R64[r.Slot*testLanes:][:testLanes]
		}
	}
	p := ops.Predicate(nil)
	if o.D.Class == ir.ClassPred {
		p = to.Preds[o.D.Slot*32:][:testLanes/32]
	}
	switch f := o.F.Loop.(type) {
	case func(d, a []uint32):
		f(a[0], a[1])
	case func(d, a, b []uint32):
		f(a[0], a[1], a[2])
	case func(d, a, b, c []uint32):
		f(a[0], a[1], a[2], a[3])
	case func(d, a, b, c, e []uint32):
		f(a[0], a[1], a[2], a[3], a[4])
	case func(d, a []uint64):
		f(b[0], b[1])
	case func(d, a, b []uint64):
		f(b[0], b[1], b[2])
	case func(d, a, b, c []uint64):
		f(b[0], b[1], b[2], b[3])
	case func(d []uint32, a []uint64):
		f(a[0], b[1])
	case func(d []uint64, a []uint32):
		f(b[0], a[1])
	case func(d []uint64, a, b []uint32):
		f(b[0], a[1], a[2])
	case func(d []uint64, a, b []uint32, c []uint64):
		f(b[0], a[1], a[2], b[3])
	case func(d, a []uint64, b []uint32):
		f(b[0], b[1], a[2])
	case func(d ops.Predicate, a, b []uint32):
		f(p, a[1], a[2])
	case func(d ops.Predicate, a, b []uint64):
		f(p, b[1], b[2])
	default:
		panic(fmt.Sprintf("%s is a %T", o.F.Name, f))
	}
}

// candidates returns all operations that can be in a run.
func candidates() (list []ops.Operation) {
	for name, loop := range ops.Operations() {
		if o := (ops.Operation{Name: name, Loop: loop}); known(&ir.Arith{F: o}) {
			list = append(list, o)
		}
	}
	for _, f := range libdevice.All() {
		if f.Result != nil && strings.HasPrefix(f.Result.Name, libdevice.Prefix) && known(&ir.Arith{F: *f.Result}) {
			list = append(list, *f.Result)
		}
	}
	slices.SortFunc(list, func(a, b ops.Operation) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range []uint32{0, 0x96, 0xe8, 0x1b, 0xff, 0xc0} {
		list = append(list, ops.Lop3(t))
	}
	return append(list, ops.Plus(1), ops.Plus(math.MaxUint64-6), ops.Plus(1<<40))
}

func check(t *testing.T, insts []ir.Inst, masked bool, r *rand.Rand) {
	t.Helper()
	checkFrom(t, insts, masked, r, func(*Files) {})
}

// checkAccess is check with addresses in the registers.
func checkAccess(t *testing.T, insts []ir.Inst, masked bool, r *rand.Rand) {
	t.Helper()
	checkFrom(t, insts, masked, r, func(f *Files) { f.point(r) })
}

// point sets registers to addresses: consecutive ones, equal ones, others, and some
// that are invalid.
func (f *Files) point(r *rand.Rand) {
	for slot := range testRegs {
		for c := range ir.Class(2) {
			base, stride := uint64(r.IntN(40))*16, uint64([]int{0, 1, 2, 4, 8, 8, 16, 16, 3, 4, -4}[r.IntN(11)])
			if c == ir.Class64 && r.IntN(4) > 0 {
				base += f.Globals[0].Base
			}
			for l := range testLanes {
				v := base + stride*uint64(l)
				if stride == 3 || r.IntN(300) == 0 {
					v = base + uint64(r.IntN(200))
				}
				f.set(ir.Ref{Class: c, Slot: slot}, l, v)
			}
		}
	}
}

func checkFrom(t *testing.T, insts []ir.Inst, masked bool, r *rand.Rand, prepare func(*Files)) {
	t.Helper()
	o := Options{Lanes: testLanes, Masked: masked, LocalBytes: testLocal}
	dead := uint(0) // registers, by slot
	if r.IntN(3) == 0 {
		dead = uint(r.Uint32())
		o.Live = func(inst int, ref ir.Ref) bool { return inst < len(insts) || dead>>ref.Slot&1 == 0 }
	}
	if r.IntN(2) == 0 {
		o.Expect = []Kind{equal, consecutive, inside, apart}[r.IntN(3):]
	}
	constants := constantsFor(insts, r)
	o.Constant = func(ref ir.Ref) (uint64, bool) { v, ok := constants[ref]; return v, ok }
	code, err := Compile(insts, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := amd64.Load(code.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 4 {
		start := newFiles(r)
		prepare(start)
		for ref, v := range constants {
			for l := range testLanes {
				start.set(ref, l, v)
			}
		}
		want, got := start.clone(), start.clone()
		through(t, insts, masked, dead, c.Function(0), want, got)
		compare(t, insts, dead, start, want, got)
		if t.Failed() {
			return
		}
	}
}

// constantsFor returns constants, mostly addresses, for some of the registers that no
// instruction writes.
func constantsFor(insts []ir.Inst, r *rand.Rand) map[ir.Ref]uint64 {
	constants := map[ir.Ref]uint64{}
	for slot := range testRegs {
		if r.IntN(2) == 0 {
			v := uint64(r.IntN(17) * 4)
			if r.IntN(4) == 0 {
				v = uint64(random32(r))
			}
			constants[ir.Ref{Class: ir.Class(slot % 2), Slot: slot}] = v
		}
	}
	for i := range insts {
		results, _ := insts[i].Op.Registers()
		for _, ref := range results {
			delete(constants, ref)
		}
	}
	return constants
}

// through executes the function for all tiles. Where it leaves, through checks that it
// had to and that the state is right, and continues after the run. want is interpreted.
func through(t *testing.T, insts []ir.Inst, masked bool, dead uint, f amd64.Function, want, got *Files) {
	t.Helper()
	start := want.clone()
	for from := 0; from < testLanes/8; {
		before, c := slices.Clone(got.Shared), new(Context)
		tile, inst := got.run(c, f, from, testLanes/8)
		if hasAtomic(insts) && !c.Changed() && !slices.Equal(before, got.Shared) {
			t.Errorf("tiles from %d on have changed memory, but Changed reports false", from)
		}
		for ; from < tile; from++ {
			if !interpret(insts, want, want.lanes(from, from+1, masked)) {
				t.Errorf("tile %d has executed the whole run, want it to leave at an access that is not allowed", from)
			}
		}
		if tile == testLanes/8 {
			return
		}
		lanes := want.lanes(tile, tile+1, masked)
		interpret(insts[:inst], want, lanes)
		compare(t, insts, dead, start, want, got)
		if a := accessOf(insts[inst].Op); a == nil || want.allowed(insts[inst].Op, a, want.guarded(&insts[inst], lanes)) {
			t.Errorf("tile %d has left at instruction %d, %s, want it to continue: the access is allowed", tile, inst, insts[inst].Op.Name())
			return
		}
		interpret(insts[inst:], want, lanes)
		interpret(insts[inst:], got, lanes)
		from = tile + 1
	}
}

func compare(t *testing.T, insts []ir.Inst, dead uint, start, want, got *Files) {
	t.Helper()
	for c, n := range []int{ir.Class32: testRegs, ir.Class64: testRegs, ir.ClassPred: testRegs} {
		for s := range n {
			r := ir.Ref{Class: ir.Class(c), Slot: s}
			for l := range testLanes {
				if w, g := want.lane(r, l), got.lane(r, l); w != g && dead>>s&1 == 0 {
					text := ""
					for i := range insts {
						d, s := insts[i].Op.Registers()
						text += fmt.Sprintf("\n%v = %s %v if %v", d, insts[i].Op.Name(), s, insts[i].Guard)
					}
					_, s := insts[0].Op.Registers()
					var in []string
					for _, x := range s {
						in = append(in, fmt.Sprintf("%v=%#x", x, start.lane(x, l)))
					}
					t.Errorf("lane %d: register %v = %#x, want %#x\nat the start %v%s", l, r, g, w, in, text)
					return
				}
			}
		}
	}
	if !slices.Equal(want.Active, got.Active) {
		t.Errorf("active lanes = %#x, want %#x", got.Active, want.Active)
	}
	if !slices.Equal(want.Globals[0].Data, got.Globals[0].Data) || !slices.Equal(want.Shared, got.Shared) || !slices.Equal(want.Params, got.Params) || !slices.Equal(want.Local, got.Local) {
		t.Error("global, shared, parameter or local memory differs from the interpreter's")
	}
}

func requireProcessor(t testing.TB) {
	t.Helper()
	if !amd64.Available() {
		t.Skip("this processor lacks AVX2, FMA, BMI2, LZCNT or F16C")
	}
}

// TestOperations compares each operation with the loop of gpu/soft/ops.
func TestOperations(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	for i, o := range list {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		t.Run(o.String(), func(t *testing.T) {
			for n := range 8 {
				check(t, []ir.Inst{randomArith(r, o, n%3 == 2)}, n%2 == 1, r)
				if t.Failed() {
					return
				}
			}
		})
	}
	t.Logf("%d operations", len(list))
}

func randomArith(r *rand.Rand, o ops.Operation, guarded bool) ir.Inst {
	d, s, _ := ir.ShapeOf(o.Loop)
	a := &ir.Arith{F: o, D: ir.Ref{Class: d, Slot: r.IntN(testRegs)}}
	for _, c := range s {
		a.S = append(a.S, ir.Ref{Class: c, Slot: r.IntN(testRegs)})
	}
	in := ir.Inst{Op: a}
	if guarded {
		in.Guard = &ir.Pred{Slot: r.IntN(testRegs), Not: r.IntN(2) == 0}
	}
	return in
}

// TestRuns compares random runs of all operations with interpret.
func TestRuns(t *testing.T) {
	requireProcessor(t)
	list := candidates()
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 4))
		var insts []ir.Inst
		for range 1 + r.IntN(60) {
			insts = append(insts, randomInst(r, list))
		}
		check(t, insts, r.IntN(2) == 0, r)
		if t.Failed() {
			t.Fatalf("seed %d: run differs from the interpreter", seed)
		}
	}
}

func randomInst(r *rand.Rand, list []ops.Operation) ir.Inst {
	in := randomArith(r, list[r.IntN(len(list))], r.IntN(4) == 0)
	ref := func(c ir.Class) ir.Ref { return ir.Ref{Class: c, Slot: r.IntN(testRegs)} }
	pred := func() ir.Pred { return ir.PredOf(ref(ir.ClassPred), r.IntN(2) == 0) }
	logic := []string{"and", "or", "xor", "not", "mov"}[r.IntN(5)]
	switch r.IntN(12) {
	case 11:
		in.Op = randomConvert(r)
	case 10:
		each, words := 16+16*r.IntN(2), r.Perm(testRegs)
		wide, narrow := ref(ir.Class(each/32)), []ir.Ref{{Slot: words[0]}, {Slot: words[1]}}
		in.Op = &ir.Pack{D: wide, S: narrow, Each: each}
		if r.IntN(2) == 0 {
			narrow[r.IntN(2)] = []ir.Ref{ir.None, {Slot: words[2]}}[r.IntN(2)]
			in.Op = &ir.Unpack{D: narrow, S: wide, Each: each}
		}
	case 0:
		c := ir.Class(r.IntN(2))
		in.Op = &ir.Select{D: ref(c), A: ref(c), B: ref(c), P: pred()}
	case 1:
		in.Op = &ir.Logic{F: logic, D: ref(ir.ClassPred), A: pred(), B: pred()}
	case 2:
		p := ir.LogicPair{F: logic, P: ref(ir.ClassPred), Q: ref(ir.ClassPred), A: ref(ir.ClassPred), B: pred()}
		if r.IntN(3) == 0 || p.P == p.Q {
			p.P = ir.None
		}
		in.Op = &p
	}
	return in
}
