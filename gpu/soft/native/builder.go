package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// id names a vector of 256 bits before a register is assigned to it. Each is written
// once.
type id = regalloc.ID

// value is the content of a register of the program for a tile: one vector of eight
// lanes, in which a predicate has all bits of a lane set where it is true, or two
// vectors of four lanes of 64 bits.
type value struct {
	class  ir.Class
	lo, hi id
}

// regs has the registers of a vector instruction.
type regs struct {
	use, def, temp []amd64.Reg
}

type emitFunc func(a *amd64.Assembler, r regs)

// builder collects the vector instructions of a run.
type builder struct {
	code     regalloc.Code
	emits    []emitFunc       // of code.Insts
	pure     []bool           // of code.Insts: it has no effect besides its results
	places   []place          // of slots
	loaded   map[place]id     // of register files
	current  map[ir.Ref]value // values of registers that are newer than those in the files
	dirty    []ir.Ref         // registers whose value is not in the files yet
	loose    map[id]bool      // of 32 bits, may be another NaN than that of PTX
	strict   map[id]id        // loose ones with NaNs replaced by that of PTX
	flat     map[id]bool      // has no subnormal numbers of 32 bits
	flats    map[id]id        // others with subnormal numbers flushed
	wide     map[id][2]id     // masks of eight lanes as two of four
	layout   layout
	known    func(r ir.Ref) (uint64, bool) // Options.Constant
	memos    int                           // number of memos that the loads use so far
	globals  []int                         // instructions that access device memory
	accesses int                           // number of memory accesses
	left     int                           // index in code.Insts of the last instruction that may leave

	segment    *segment      // of a region, or nil
	steady     *steadyReader // of a block whose accesses are steady, or nil
	once       bool          // the run must not be executed again
	stores     bool          // it stores
	stored     bool          // local memory has been written
	err        error
	quick      bool   // the body writes nothing before its last access
	cycle      *cycle // of a body that is a loop
	expect     []Kind // the expected patterns of the addresses of a quick body's groups
	general    amd64.Label
	widened    map[id]value // addresses of 32 bits extended to 64
	groups     map[groupKey][]*group
	groupCount int
	insts      []ir.Inst // of the run
	quads      []*quad
	warp       *warpTiles // of a body for all tiles of a warp, or nil
	tile       int        // of it, of which the next instruction is
}

func newBuilder() *builder {
	var all []regalloc.Reg
	for r := range regalloc.Reg(16) {
		all = append(all, r)
	}
	return &builder{
		code:   regalloc.Code{Registers: [][]regalloc.Reg{all}},
		loaded: map[place]id{}, current: map[ir.Ref]value{},
		loose: map[id]bool{}, strict: map[id]id{}, flat: map[id]bool{}, flats: map[id]id{}, wide: map[id][2]id{},
		widened: map[id]value{}, groups: map[groupKey][]*group{},
	}
}

func (b *builder) value(v regalloc.Value) id {
	b.code.Values = append(b.code.Values, v)
	return id(len(b.code.Values) - 1)
}

// in returns the value that a place has at the start.
func (b *builder) in(p place) id {
	if v, ok := b.loaded[p]; ok {
		return v
	}
	b.places = append(b.places, p)
	v := b.value(regalloc.Value{Slot: len(b.places) - 1, In: true})
	b.loaded[p] = v
	if b.cycle != nil {
		b.cycle.enters(b, p, v)
	}
	return v
}

// emit adds an instruction with one result, which is pure.
func (b *builder) emit(f emitFunc, uses ...id) id {
	v := b.add(regalloc.Inst{Uses: uses}, 1, f)[0]
	b.pure[len(b.pure)-1] = true
	return v
}

func (b *builder) add(in regalloc.Inst, results int, f emitFunc) []id {
	for range results {
		in.Defs = append(in.Defs, b.value(regalloc.Value{Slot: regalloc.NoSlot}))
	}
	b.code.Insts = append(b.code.Insts, in)
	b.emits, b.pure = append(b.emits, f), append(b.pure, false)
	return in.Defs
}

// k32 and k64 return a constant in every lane.
func (b *builder) k32(v uint32) id { return b.in(place{kind: constant, n: uint64(v)<<32 | uint64(v)}) }
func (b *builder) k64(v uint64) id { return b.in(place{kind: constant, n: v}) }

func (b *builder) op(in *amd64.Inst, x, y id) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(in, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Y(r.use[1]))
	}, x, y)
}

func (b *builder) op1(in *amd64.Inst, x id) id {
	return b.emit(func(a *amd64.Assembler, r regs) { a.Emit(in, amd64.Y(r.def[0]), amd64.Y(r.use[0])) }, x)
}

// op1Imm and opImm add an instruction with an immediate byte.
func (b *builder) op1Imm(in *amd64.Inst, x id, n int64) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(in, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Imm(n))
	}, x)
}

func (b *builder) opImm(in *amd64.Inst, x, y id, n int64) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(in, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Y(r.use[1]), amd64.Imm(n))
	}, x, y)
}

// replace adds an instruction whose first operand is also its result.
func (b *builder) replace(in *amd64.Inst, x, y, z id) id {
	v := b.add(regalloc.Inst{Uses: []id{x, y, z}, Tied: true}, 1, func(a *amd64.Assembler, r regs) {
		a.Emit(in, amd64.Y(r.def[0]), amd64.Y(r.use[1]), amd64.Y(r.use[2]))
	})[0]
	b.pure[len(b.pure)-1] = true
	return v
}

// widen adds an instruction that reads the low half of a vector, narrow one that writes
// it.
func (b *builder) widen(in *amd64.Inst, x id) id {
	return b.emit(func(a *amd64.Assembler, r regs) { a.Emit(in, amd64.Y(r.def[0]), amd64.X(r.use[0])) }, x)
}

func (b *builder) narrow(in *amd64.Inst, x id) id {
	return b.emit(func(a *amd64.Assembler, r regs) { a.Emit(in, amd64.X(r.def[0]), amd64.Y(r.use[0])) }, x)
}

// upper returns the high half of a vector as a low half.
func (b *builder) upper(x id) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VEXTRACTI128, amd64.X(r.def[0]), amd64.Y(r.use[0]), amd64.Imm(1))
	}, x)
}

// join combines two low halves to a vector.
func (b *builder) join(lo, hi id) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VINSERTI128, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.X(r.use[1]), amd64.Imm(1))
	}, lo, hi)
}

// blend returns yes in the lanes of a mask and no in the others.
func (b *builder) blend(no, yes, mask id) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VBLENDVPS, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Y(r.use[1]), amd64.Y(r.use[2]))
	}, no, yes, mask)
}

func (b *builder) zero() id    { return b.k32(0) }
func (b *builder) not(x id) id { return b.op(amd64.VPXOR, x, b.k32(^uint32(0))) }

// extend widens lanes of 32 bits to 64, with an instruction that widens four.
func (b *builder) extend(in *amd64.Inst, x id) value {
	return value{ir.Class64, b.widen(in, x), b.widen(in, b.upper(x))}
}

// low returns the low 32 bits of lanes of 64 bits.
func (b *builder) low(v value) id {
	return b.op1Imm(amd64.VPERMQ, b.opImm(amd64.VSHUFPS, v.lo, v.hi, 0x88), 0xd8)
}

// halves returns a mask of eight lanes as two masks of four lanes of 64 bits.
func (b *builder) halves(mask id) (lo, hi id) {
	if h, ok := b.wide[mask]; ok {
		return h[0], h[1]
	}
	v := b.extend(amd64.VPMOVSXDQ, mask)
	b.wide[mask] = [2]id{v.lo, v.hi}
	return v.lo, v.hi
}

// choose is blend for values of any class.
func (b *builder) choose(no, yes value, mask id) value {
	if no.class != ir.Class64 {
		return value{class: no.class, lo: b.blend(no.lo, yes.lo, mask)}
	}
	lo, hi := b.halves(mask)
	return value{no.class, b.blend(no.lo, yes.lo, lo), b.blend(no.hi, yes.hi, hi)}
}
