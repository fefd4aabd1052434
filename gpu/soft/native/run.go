package native

import (
	"fmt"
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// MaxRun is the maximum number of instructions of a run: all tiles of a block are
// processed within about 100 µs.
const MaxRun = 256

// Options are the options of the compilation of a run.
type Options struct {
	Lanes  int  // number of lanes of the machine: the stride of its registers
	Masked bool // Files.Active masks the lanes; else all are active
	// LocalBytes is the number of bytes of local memory of each lane.
	LocalBytes uint64
	// Live reports whether a register may be read after an instruction of the run, or
	// after the run where inst is the number of its instructions. If nil, all may be.
	Live func(inst int, r ir.Ref) bool
	// Constant returns the value that a register has in every lane, where that is known.
	// It may be nil.
	Constant func(r ir.Ref) (uint64, bool)
	// Expect has the most frequent patterns of the addresses of the function's groups
	// (Function.Groups, Context.Kinds). It is nil where they are not known.
	Expect []Kind
	// Tiles has for the same groups what the addresses of the tiles of a warp have in
	// common.
	Tiles []Tiles
	// Loop describes the condition for repeating the run. It is nil where the code does
	// not repeat it.
	Loop *Loop

	segment *segment // of a region, or nil
	steady  *Steady  // of a region whose steady registers are not in the files, or nil
}

// Known returns how many of the instructions, from the first on, can form a run. One
// tile is processed before the next. So that lanes see one another's stores as if they
// executed in lockstep, a run has either one store and no load besides it, or no store.
func Known(insts []ir.Inst) int {
	loads, stores, elements, globals := 0, 0, 0, 0
	for i := range insts {
		switch op := insts[i].Op.(type) {
		case *ir.Store:
			if op.Space != ir.Local {
				stores++
			}
		case *ir.Atomic:
			stores++
		case *ir.Load:
			if op.Space == ir.Local {
				break
			}
			elements += op.N
			if op.Space <= ir.Global {
				globals++
			}
			if op.Space != ir.Param { // no store can change parameters
				loads++
			}
		}
		if i == MaxRun || !known(insts[i].Op) || elements > maxMemos || globals >= maxGlobals || stores > 1 || stores == 1 && loads > 0 {
			return i
		}
	}
	return len(insts)
}

// Function is the machine code of a run.
type Function struct {
	Code    []byte
	Globals []int // the accesses to device memory, by instruction
	Groups  int   // number of groups of loads whose addresses are examined together
}

// Compile compiles instructions that are all Known. The function executes them one
// after another for the lanes of each tile.
func Compile(insts []ir.Inst, o Options) (*Function, error) {
	if n := Known(insts); n < len(insts) {
		return nil, fmt.Errorf("compile run: instruction %d of %d, %s, is not known", n, len(insts), insts[n].Op.Name())
	}
	f, err := newFunction(insts, o)
	if err != nil {
		return nil, err
	}
	code, err := f.assemble()
	return &Function{code, f.bodies[0].globals, f.bodies[len(f.bodies)-1].groupCount}, err
}

// newFunction builds the bodies of a run.
func newFunction(insts []ir.Inst, o Options) (*function, error) {
	general, err := build(insts, o)
	if err != nil {
		return nil, err
	}
	f := &function{masked: o.Masked, bodies: []*body{general}}
	if o.Masked && o.segment != nil { // few tiles of an arm have all lanes active
		return f, nil
	}
	return f, f.addQuick(insts, o)
}

// addQuick adds the bodies for tiles of which all lanes are active.
func (f *function) addQuick(insts []ir.Inst, o Options) error {
	o.Masked = false
	general, expect := f.bodies[0], func(b *builder) { b.expect = o.Expect }
	add := func(b *body, err error) error {
		f.bodies = append(f.bodies, b)
		return err
	}
	expected := slices.ContainsFunc(o.Expect, func(k Kind) bool { return k < apart })
	loops := o.Loop != nil && loopable(insts)
	if general.accesses > 0 && !general.once {
		if expected && !loops && o.segment != nil { // less code for a region
			return add(build(insts, o, quick, expect))
		}
		if err := add(build(insts, o, quick)); err != nil {
			return err
		}
	}
	if loops {
		return add(buildLoop(insts, o, expect))
	}
	if len(f.bodies) > 1 && expected {
		return add(build(insts, o, quick, expect))
	}
	return nil
}

// body is the code of a run for one tile.
type body struct {
	*builder
	steps []regalloc.Step
}

// quick makes a builder that of a quick body.
func quick(b *builder) { b.quick = true }

// maxOffset is the maximum offset of a vector in a register file.
const maxOffset = math.MaxInt32 - tile64

func build(insts []ir.Inst, o Options, options ...func(*builder)) (*body, error) {
	b := collect(insts, &o, options...)
	b.finish(len(insts), &o)
	return b.allocate(&o)
}

// collect converts the instructions of a run to vector instructions.
func collect(insts []ir.Inst, o *Options, options ...func(*builder)) *builder {
	b := newBuilder()
	b.layout, b.segment, b.known, b.insts = layout{uint64(o.Lanes)}, o.segment, o.Constant, insts
	for _, f := range options {
		f(b)
	}
	if o.steady != nil {
		b.steady = &steadyReader{of: o.steady}
	}
	for i := range insts {
		if b.steady != nil {
			if _, ok := o.steady.written(&insts[i]); ok {
				continue
			}
		}
		b.inst(&insts[i], i, o)
	}
	return b
}

// known reports whether an operation has a lowering.
func known(op ir.Op) bool {
	switch o := op.(type) {
	case *ir.Arith:
		_, ok := find(o.F)
		return ok
	case *ir.Load:
		return loadable(o)
	case *ir.Store:
		return storable(o)
	case *ir.Atomic:
		return updatable(o)
	case *ir.Convert:
		return convertible(o)
	case *ir.Pack:
		return packable(o.Each, len(o.S), o.D)
	case *ir.Unpack:
		return packable(o.Each, len(o.D), o.S)
	case *ir.CopyWord:
		return copyable(o)
	case *ir.Select, *ir.Logic, *ir.LogicPair:
		return true
	}
	return false
}

// inst adds an instruction of the program.
func (b *builder) inst(in *ir.Inst, index int, o *Options) {
	results, _ := in.Op.Registers()
	var values []value
	switch op := in.Op.(type) {
	case *ir.Load:
		values = b.load(op, in, index, o)
	case *ir.Store:
		b.store(op, in, index, o)
	case *ir.Atomic:
		b.once = true
		values = b.atomic(op, in, index, o)
	case *ir.CopyWord:
		values = b.copyWord(op, in, index, o)
	default:
		values = b.results(in.Op)
	}
	if in.Guard != nil {
		mask := b.pred(*in.Guard) // before it is written
		for i, v := range values {
			values[i] = b.choose(b.settle(b.read(results[i])), b.settle(v), mask)
		}
	}
	for i, v := range values {
		b.write(results[i], v)
	}
}

// results computes the results of an operation, one for each register that it writes.
func (b *builder) results(op ir.Op) []value {
	switch o := op.(type) {
	case *ir.Arith:
		return b.arith(o)
	case *ir.Convert:
		return []value{b.convert(o)}
	case *ir.Pack:
		return []value{b.pack(o)}
	case *ir.Unpack:
		return b.unpack(o)
	case *ir.Select:
		return []value{b.choose(b.settle(b.read(o.B)), b.settle(b.read(o.A)), b.pred(o.P))}
	case *ir.Logic:
		return []value{b.logic(o.F, b.pred(o.A), b.pred(o.B))}
	case *ir.LogicPair:
		x, y := b.pred(ir.PredOf(o.A, false)), b.pred(o.B)
		pair := []value{b.logic(o.F, x, y), b.logic(o.F, b.not(x), y)}
		if o.P.Class == ir.ClassNone {
			return pair[1:]
		}
		return pair
	}
	panic(fmt.Sprintf("no lowering of %T", op)) // excluded by Known
}

func (b *builder) arith(o *ir.Arith) []value {
	l, _ := find(o.F)
	s := make([]value, len(o.S))
	for i, r := range o.S {
		if s[i] = b.read(r); !l.loose {
			s[i] = b.settle(s[i])
		}
	}
	if o.D.Class == ir.ClassNone {
		return nil
	}
	return []value{l.f(b, s)}
}

func (b *builder) logic(f string, x, y id) value {
	in := map[string]*amd64.Inst{"and": amd64.VPAND, "or": amd64.VPOR, "xor": amd64.VPXOR}[f]
	v := value{class: ir.ClassPred, lo: x}
	switch {
	case in != nil:
		v.lo = b.op(in, x, y)
	case f == "not":
		v.lo = b.not(x)
	}
	return v
}

// read returns the current value of a register.
func (b *builder) read(r ir.Ref) value {
	if v, ok := b.current[r]; ok {
		return v
	}
	if v, ok := b.constant(r); ok {
		return v
	}
	if b.steady != nil {
		if v, ok := b.steadyValue(r); ok {
			return v
		}
	}
	return b.outside(r)
}

// constant returns the value that a register has in every lane, where that is known.
func (b *builder) constant(r ir.Ref) (v value, ok bool) {
	if b.known == nil || r.Class != ir.Class32 && r.Class != ir.Class64 {
		return v, false
	}
	n, ok := b.known(r)
	switch {
	case !ok:
		return v, false
	case r.Class == ir.Class32:
		return value{class: r.Class, lo: b.k32(uint32(n))}, true
	}
	return value{r.Class, b.k64(n), b.k64(n)}, true
}

// isConstant returns the value that a vector has in every lane of 64 bits, if it is a
// constant.
func (b *builder) isConstant(v id) (uint64, bool) {
	if x := b.code.Values[v]; x.In && b.home(v).kind == constant {
		return b.home(v).n, true
	}
	return 0, false
}

// outside returns the value of a register in the files at the start.
func (b *builder) outside(r ir.Ref) value {
	n, t := uint64(r.Slot), uint8(b.tile)
	switch r.Class {
	case ir.Class32:
		return value{class: r.Class, lo: b.in(place{kind: file32, n: n, tile: t})}
	case ir.Class64:
		return value{r.Class, b.in(place{kind: file64, n: n, tile: t}), b.in(place{kind: file64, n: n, half: 1, tile: t})}
	}
	return value{class: r.Class, lo: b.in(place{kind: filePred, n: n, tile: t})}
}

// pred returns a predicate operand as a mask.
func (b *builder) pred(p ir.Pred) id {
	m := b.read(p.Ref()).lo
	if p.Not {
		return b.not(m)
	}
	return m
}

func (b *builder) write(r ir.Ref, v value) {
	v.lo = b.copied(v.lo)
	if r.Class == ir.Class64 {
		v.hi = b.copied(v.hi)
	}
	if !slices.Contains(b.dirty, r) {
		b.dirty = append(b.dirty, r)
	}
	b.current[r] = v
}

// function has the bodies of a run, the general one first. The others are for tiles of
// which all lanes are active; where one of them cannot continue, it falls back to the
// one before it, with nothing written to the register files yet.
type function struct {
	bodies []*body
	masked bool
}

// assemble writes the function around the loop over tiles.
func (f *function) assemble() ([]byte, error) {
	a := &amd64.Assembler{}
	prologue(a)
	f.eachTile(a)
	a.Emit(amd64.XOR, amd64.D(amd64.RAX), amd64.D(amd64.RAX))
	a.Emit(amd64.RET)
	code, err := a.Finish()
	if err != nil {
		return nil, fmt.Errorf("compile a run: %w", err)
	}
	return code, nil
}

// eachTile writes the loop over tiles around the bodies, of which there must be at
// least one.
func (f *function) eachTile(a *amd64.Assembler) {
	turn, next, general := a.Label(), a.Label(), a.Label()
	if s := f.bodies[0].segment; s != nil {
		s.next = next
	}
	a.Bind(turn)
	if f.masked {
		a.Emit(amd64.MOVZXB, amd64.D(amd64.RAX), f.bodies[0].layout.bits(place{kind: active}))
		a.Emit(amd64.TEST, amd64.D(amd64.RAX), amd64.D(amd64.RAX))
		a.JumpIf(amd64.CondE, next)
		if len(f.bodies) > 1 {
			a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(0xff))
			a.JumpIf(amd64.CondNE, general)
		}
	}
	for i := len(f.bodies) - 1; i > 0; i-- {
		before := general
		if i > 1 {
			before = a.Label()
		}
		f.bodies[i].general = before
		if f.bodies[i].cycle != nil {
			f.bodies[i].writeLoop(a, next)
		} else {
			f.bodies[i].write(a)
			a.Jump(next)
		}
		a.Bind(before)
	}
	if len(f.bodies) == 1 {
		a.Bind(general)
	}
	f.bodies[0].write(a)
	a.Bind(next)
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Imm(tile32))
	a.Emit(amd64.ADD, amd64.Q(reg64), amd64.Imm(tile64))
	a.Emit(amd64.ADD, amd64.Q(regTile), amd64.Imm(1))
	a.Emit(amd64.CMP, amd64.Q(regTile), amd64.Q(regEnd))
	a.JumpIf(amd64.CondB, turn)
}

func (b *body) write(a *amd64.Assembler) {
	for i := range b.steps {
		b.step(a, &b.steps[i])
	}
}

// prologue loads the registers that are fixed in the code.
func prologue(a *amd64.Assembler) {
	for _, x := range []struct {
		r  amd64.Reg
		at int32
	}{{reg32, r32Offset}, {reg64, r64Offset}, {regPreds, predsOffset}, {regActive, activeOffset}, {regTile, tileOffset}, {regEnd, endOffset}} {
		a.Emit(amd64.MOV, amd64.Q(x.r), amd64.Mem(regContext, x.at))
	}
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Q(regTile))
	a.Emit(amd64.SHL, amd64.Q(amd64.RAX), amd64.Imm(5))
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Q(amd64.RAX))
	a.Emit(amd64.LEA, amd64.Q(reg64), amd64.Mem(reg64, 0).Index(amd64.RAX, 2))
}

// step writes an instruction with its registers.
func (b *builder) step(a *amd64.Assembler, s *regalloc.Step) {
	switch s.Kind {
	case regalloc.Load:
		b.layout.load(a, amd64.Reg(s.To), b.place(s.Slot))
	case regalloc.Store:
		b.layout.store(a, b.place(s.Slot), amd64.Reg(s.From))
	case regalloc.Move:
		a.Emit(amd64.VMOVDQA, amd64.Y(amd64.Reg(s.To)), amd64.Y(amd64.Reg(s.From)))
	default:
		b.emits[s.Inst](a, regs{physical(s.Uses), physical(s.Defs), physical(s.Temps)})
	}
}

func physical(list []regalloc.Reg) (r []amd64.Reg) {
	for _, x := range list {
		r = append(r, amd64.Reg(x))
	}
	return r
}

// place returns the place of a slot. Slots after those of values are spills.
func (b *builder) place(slot int) place {
	if slot < len(b.places) {
		return b.places[slot]
	}
	return place{kind: spill, n: uint64(slot - len(b.places))}
}
