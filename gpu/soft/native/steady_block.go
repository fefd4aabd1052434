package native

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Blocks of a region whose accesses are at steady addresses. The work of their steady
// registers is done once for a warp: addresses and bounds are checked before the first
// tile, branches on which all lanes agree are decided, and the registers are computed
// for the lanes only where something else needs them. A tile executes the whole block
// before the next one, also where there are loads and stores: it is checked before that
// no lane accesses what another one stores. Where a check fails, the warp executes the
// block's runs.
//
// Registers that such blocks would write are deferred: they are computed for a warp,
// all at once, before anything reads them from the register files (Context.ready).

// Limits: the accesses of a block, those of them that are checked, and the deferred
// registers of a region.
const (
	maxSteadyAccesses = 64
	maxSteadyLeads    = 16
	maxDeferred       = 128
	maxPairs          = 24 // of stores and the accesses that they must not overlap
)

// warpLanes is the number of lanes of the warp before the current tile.
const warpLanes = amd64.R15

// pointers hold the addresses in memory at which accesses of the tile begin.
var pointers = []amd64.Reg{amd64.RBX, amd64.R12, amd64.R13, amd64.R14}

// steadyBlock is a block that is compiled to a steady body.
type steadyBlock struct {
	*RegionBlock
	insts    []*ir.Inst
	accesses []*steadyAccess
	leads    []*steadyAccess // those of accesses that are checked
}

// steadyBlockOf returns a block as one whose accesses are steady, or nil.
func (r *region) steadyBlockOf(b *RegionBlock) *steadyBlock {
	if r.steady == nil || len(b.Runs) == 1 && b.Runs[0].Options.Loop != nil && loopable(b.Runs[0].Insts) {
		return nil
	}
	x := &steadyBlock{RegionBlock: b}
	for i := range b.Runs {
		run, globals := &b.Runs[i], 0
		for j := range run.Insts {
			in := &run.Insts[j]
			a, kind := memoryOf(in.Op)
			window := int32(0)
			if a != nil && a.Space <= ir.Global {
				if globals == maxGlobals {
					return nil
				}
				window = regionOffset(run.Window + globals)
				globals++
			} else if a != nil {
				window = sharedOffset
			}
			if _, ok := r.steady.written(in); !ok && kind != noAccess {
				s, ok := r.steadyAccessOf(in, a, kind)
				if !ok || len(x.accesses) == maxSteadyAccesses {
					return nil
				}
				s.window = window
				x.add(s)
			}
			x.insts = append(x.insts, in)
		}
	}
	if len(x.leads) > maxSteadyLeads || x.pairs() > maxPairs || x.distant() && !x.stores() {
		return nil
	}
	x.assign()
	return x
}

// accessKind is the way in which an instruction accesses memory.
type accessKind uint8

const (
	noAccess accessKind = iota
	loads
	stores
	others // not supported in steady blocks
)

// memoryOf returns the access of an instruction.
func memoryOf(op ir.Op) (*ir.Access, accessKind) {
	switch o := op.(type) {
	case *ir.Load:
		return &o.Access, loads
	case *ir.Store:
		return &o.Access, stores
	case *ir.Atomic:
		return &o.Access, others
	case *ir.CopyWord:
		return nil, others
	}
	return nil, noAccess
}

// prepareSteady finds what the steady blocks of a region need: scalars, and the
// registers that they defer.
func (r *region) prepareSteady(blocks []RegionBlock, s *Steady) {
	if r.steady = s; s == nil {
		return
	}
	r.scalars = newScalars(s, layout{uint64(r.lanes)})
	for i := range blocks {
		_, arms := r.armsOf(&blocks[i])
		for _, x := range arms {
			r.deferArm(r.blocks[x.block])
		}
		x := r.steadyBlockOf(&blocks[i])
		if x == nil {
			continue
		}
		r.steadyBlocks[x.Number], r.scalars.part = x, r.parts[x.Number]
		for _, lead := range x.leads {
			lead.from = r.scalars.need(lead.Base)
		}
		if x.To != x.Else && s.of(x.P.Ref()) != nil {
			r.scalars.need(x.P.Ref())
			r.needVectors([]ir.Ref{x.P.Ref()})
		}
		for j := range x.insts {
			if d, ok := s.written(x.insts[j]); ok {
				if (x.LiveOut == nil || x.LiveOut(d)) && !slices.Contains(r.deferred, d) {
					r.deferred = append(r.deferred, d)
				}
				continue
			}
			_, sources := x.insts[j].Op.Registers()
			if g := x.insts[j].Guard; g != nil {
				sources = append(sources, g.Ref())
			}
			r.needVectors(sources)
		}
	}
	if len(r.deferred) > maxDeferred || r.scalars.slots > maxScalars {
		r.steady, r.scalars, r.deferred, r.steadyBlocks = nil, nil, nil, map[int]*steadyBlock{}
	}
}

// deferArm defers the steady registers of an arm. The arm computes those that it reads
// itself.
func (r *region) deferArm(b *RegionBlock) {
	for i := range b.Runs {
		for j := range b.Runs[i].Insts {
			if d, ok := r.steady.written(&b.Runs[i].Insts[j]); ok && !slices.Contains(r.deferred, d) {
				r.deferred = append(r.deferred, d)
			}
		}
	}
}

// needVectors adds the scalars from which vectors are made.
func (r *region) needVectors(refs []ir.Ref) {
	for _, q := range r.steady.refs(refs) {
		if x := r.steady.of(q); x.vector(q) {
			r.scalars.need(q)
		}
	}
}

// vector reports whether the values of the lanes are made from that of the first one.
func (x *steady) vector(r ir.Ref) bool {
	return x.of != nil && x.form == affine && (r.Class == ir.Class32 || x.step == 0)
}

// steadyBody writes the steady body of a block. It continues at slow where a check
// fails, and at ends where lanes may take different branches.
func (r *region) steadyBody(x *steadyBlock, slow, ends amd64.Label) error {
	a := &r.a
	r.scalars.part = r.parts[x.Number]
	r.knowScalars(slow)
	for _, lead := range x.leads {
		lead.find(a, slow)
	}
	x.eachPair(func(s, o *steadyAccess) { apartFrom(a, s, o, slow) })
	b, err := r.steadyTile(x)
	if err != nil {
		return err
	}
	if len(b.code.Insts) > 0 {
		r.steadyTiles(x, b)
	}
	if x.To == x.Else || r.steady.of(x.P.Ref()) == nil {
		a.Jump(ends)
		return nil
	}
	yes, no := a.Label(), a.Label()
	r.scalars.decide(a, x.P, yes, no)
	if err := r.storePredicate(x.P.Ref()); err != nil {
		return err
	}
	a.Jump(ends)
	a.Bind(yes)
	r.goOn(x.RegionBlock, x.To)
	a.Bind(no)
	r.goOn(x.RegionBlock, x.Else)
	return nil
}

// storePredicate stores a steady predicate of the warp to the files.
func (r *region) storePredicate(p ir.Ref) error {
	b := newBuilder()
	b.layout, b.known, b.steady = layout{uint64(r.lanes)}, r.steady.constant, &steadyReader{of: r.steady, scalars: r.scalars}
	b.write(p, b.read(p))
	o := &Options{Lanes: r.lanes}
	b.finish(0, o)
	body, err := b.allocate(o)
	if err == nil {
		r.tiles(body)
	}
	return err
}

// knowScalars computes the warp's scalars unless they have been computed.
func (r *region) knowScalars(slow amd64.Label) {
	a := &r.a
	again, known := a.Label(), a.Label()
	a.Bind(again)
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, steadyOffset))
	a.Emit(amd64.CMP, amd64.Q(amd64.RAX), amd64.Imm(steadyKnown))
	a.JumpIf(amd64.CondE, known)
	a.JumpIf(amd64.CondA, slow)
	a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.At(again))
	a.Emit(amd64.MOV, amd64.Mem(regContext, backOffset), amd64.Q(amd64.RAX))
	a.Jump(r.compute[r.scalars.part])
	a.Bind(known)
}

// makeReady stores the deferred registers of the warp to the files unless they are
// there.
func (r *region) makeReady() {
	if len(r.deferred) == 0 {
		return
	}
	a, ready := &r.a, r.a.Label()
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.D(regTile))
	a.Emit(amd64.SHR, amd64.D(amd64.RAX), amd64.Imm(2))
	a.Emit(amd64.MOVZXB, amd64.D(amd64.RAX), amd64.Mem(regContext, readyOffset).Index(amd64.RAX, 1))
	a.Emit(amd64.TEST, amd64.D(amd64.RAX), amd64.D(amd64.RAX))
	a.JumpIf(amd64.CondNE, ready)
	a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.At(ready))
	a.Emit(amd64.MOV, amd64.Mem(regContext, backOffset), amd64.Q(amd64.RAX))
	a.Jump(r.settle)
	a.Bind(ready)
}

// steadyRoutines writes the routines that steady bodies call.
func (r *region) steadyRoutines() error {
	a, fail, back := &r.a, r.a.Label(), r.a.Label()
	for _, part := range slices.Sorted(maps.Keys(r.compute)) {
		a.Bind(r.compute[part])
		r.scalars.write(a, part, fail)
		a.Emit(amd64.MOV, amd64.Mem(regContext, steadyOffset).Size(8), amd64.Imm(steadyKnown))
		a.Emit(amd64.JMP, amd64.Mem(regContext, backOffset))
	}
	a.Bind(back)
	a.Emit(amd64.JMP, amd64.Mem(regContext, backOffset))
	a.Bind(fail)
	a.Emit(amd64.MOV, amd64.Mem(regContext, steadyOffset).Size(8), amd64.Imm(steadyNone))
	a.Jump(back)
	a.Bind(r.settle)
	if len(r.deferred) > 0 {
		b := newBuilder()
		b.layout, b.known, b.steady = layout{uint64(r.lanes)}, r.steady.constant, &steadyReader{of: r.steady}
		for _, d := range r.deferred {
			b.write(d, b.settle(b.read(d)))
		}
		o := &Options{Lanes: r.lanes}
		b.finish(0, o)
		body, err := b.allocate(o)
		if err != nil {
			return err
		}
		r.tiles(body)
	}
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.D(regTile))
	a.Emit(amd64.SHR, amd64.D(amd64.RAX), amd64.Imm(2))
	a.Emit(amd64.MOV, amd64.D(offset), amd64.Imm(1))
	a.Emit(amd64.MOV, amd64.Mem(regContext, readyOffset).Index(amd64.RAX, 1), amd64.B(offset))
	a.Jump(back)
	return nil
}

// settleEntry writes the entry by which the caller has the deferred registers of a warp
// computed.
func (r *region) settleEntry() amd64.Label {
	a, entry, done := &r.a, r.a.Label(), r.a.Label()
	a.Bind(entry)
	a.Emit(amd64.MOV, amd64.Q(regPreds), amd64.Mem(regContext, predsOffset))
	a.Emit(amd64.MOV, amd64.Q(regTile), amd64.Mem(regContext, tileOffset))
	a.Emit(amd64.LEA, amd64.Q(regEnd), amd64.Mem(regTile, tilesOfWarp))
	r.pointFiles()
	a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.At(done))
	a.Emit(amd64.MOV, amd64.Mem(regContext, backOffset), amd64.Q(amd64.RAX))
	a.Jump(r.settle)
	a.Bind(done)
	a.Emit(amd64.RET)
	return entry
}

// steadyReader provides vectors of steady registers.
type steadyReader struct {
	of      *Steady
	scalars *scalars     // nil: they are computed from special registers and parameters
	block   *steadyBlock // whose accesses are steady, or nil
	next    int          // index of the next access
}

// steadyTile builds the body for a tile, of the instructions of a block whose result is
// not steady.
func (r *region) steadyTile(x *steadyBlock) (*body, error) {
	o := &Options{Lanes: r.lanes, Live: func(_ int, q ir.Ref) bool { return x.LiveOut == nil || x.LiveOut(q) }}
	b := newBuilder()
	b.layout, b.known, b.quick = layout{uint64(r.lanes)}, r.steady.constant, true
	b.steady = &steadyReader{of: r.steady, scalars: r.scalars, block: x}
	for i := range x.insts {
		if _, ok := r.steady.written(x.insts[i]); !ok {
			b.inst(x.insts[i], i, o)
		}
	}
	b.finish(len(x.insts), o)
	return b.allocate(o)
}

// steadyTiles writes the loop over the tiles.
func (r *region) steadyTiles(x *steadyBlock, b *body) {
	a := &r.a
	if b.stores {
		a.Emit(amd64.MOV, amd64.Mem(regContext, changedOffset).Size(8), amd64.Imm(1))
	}
	for _, lead := range x.leads {
		if lead.pointer != amd64.NoReg {
			a.Emit(amd64.MOV, amd64.Q(lead.pointer), amd64.Mem(regContext, pointOffset(lead.number)))
		}
	}
	r.tiles(b, func() {
		for _, lead := range x.leads {
			if lead.pointer != amd64.NoReg {
				a.Emit(amd64.ADD, amd64.Q(lead.pointer), amd64.Imm(lead.step*ir.Tile))
			}
		}
	})
}

// tiles writes a body for each tile of a warp, and after it the code that after writes.
func (r *region) tiles(b *body, after ...func()) {
	a, turn := &r.a, r.a.Label()
	a.Emit(amd64.XOR, amd64.D(warpLanes), amd64.D(warpLanes))
	a.Bind(turn)
	b.write(a)
	for _, f := range after {
		f()
	}
	a.Emit(amd64.ADD, amd64.Q(warpLanes), amd64.Imm(ir.Tile))
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Imm(tile32))
	a.Emit(amd64.ADD, amd64.Q(reg64), amd64.Imm(tile64))
	a.Emit(amd64.ADD, amd64.Q(regTile), amd64.Imm(1))
	a.Emit(amd64.CMP, amd64.Q(regTile), amd64.Q(regEnd))
	a.JumpIf(amd64.CondB, turn)
	r.toFirstTile()
}

// steadyValue returns the vectors of a steady register. ok is false for a register
// whose vectors are in the files.
func (b *builder) steadyValue(r ir.Ref) (v value, ok bool) {
	x := b.steady.of.of(r)
	if x == nil || x.of == nil {
		return v, false
	}
	c := b.steady.scalars
	if c != nil && x.vector(r) {
		if s, made := c.known(r); made {
			if v, ok = b.ofScalar(r, x, s); ok {
				b.current[r] = v
				return v, true
			}
		}
	}
	if o, ok := x.of.Op.(*ir.Load); ok {
		v = b.paramValue(o)
	} else {
		v = b.results(x.of.Op)[0]
	}
	b.current[r] = v
	return v, true
}

// paramValue returns a parameter in all lanes.
func (b *builder) paramValue(o *ir.Load) value {
	n, _ := b.steady.of.param(o)
	at, in := amd64.Mem(amd64.RAX, int32(n)), amd64.VPBROADCASTD
	if o.Size == 8 {
		in = amd64.VPBROADCASTQ
	}
	v := b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, paramsOffset+windowData))
		a.Emit(in, amd64.Y(r.def[0]), at)
	})
	if o.Size == 8 {
		return value{ir.Class64, v, v}
	}
	return value{class: ir.Class32, lo: v}
}

// ofScalar returns vectors made from the first lane's value.
func (b *builder) ofScalar(r ir.Ref, x *steady, s scalar) (v value, ok bool) {
	switch {
	case s.constant || s.slot < 0: // a constant, or a special register that was moved
		return v, false
	case r.Class == ir.Class64:
		w := b.emit(func(a *amd64.Assembler, r regs) { a.Emit(amd64.VPBROADCASTQ, amd64.Y(r.def[0]), s.at) })
		return value{ir.Class64, w, w}, true
	case x.step == 0:
		return value{class: ir.Class32, lo: b.emit(func(a *amd64.Assembler, r regs) { a.Emit(amd64.VPBROADCASTD, amd64.Y(r.def[0]), s.at) })}, true
	}
	var steps []byte
	for l := range uint32(ir.Tile) {
		steps = binary.LittleEndian.AppendUint32(steps, l*uint32(x.step))
	}
	return value{class: ir.Class32, lo: b.emit(func(a *amd64.Assembler, r regs) {
		y := amd64.Y(r.def[0])
		a.Emit(amd64.IMUL, amd64.D(amd64.RAX), amd64.D(warpLanes), amd64.Imm(x.step))
		a.Emit(amd64.ADD, amd64.D(amd64.RAX), s.at)
		a.Emit(amd64.VMOVD, amd64.X(r.def[0]), amd64.D(amd64.RAX))
		a.Emit(amd64.VPBROADCASTD, y, amd64.X(r.def[0]))
		a.Emit(amd64.VPADDD, y, y, amd64.At(a.Const(steps)))
	})}, true
}

// readsDeferred reports whether the instructions of a block read deferred registers.
func (r *region) readsDeferred(b *RegionBlock) bool {
	if len(r.deferred) == 0 {
		return false
	}
	reads := func(list []ir.Ref) bool {
		return slices.ContainsFunc(list, func(q ir.Ref) bool { return slices.Contains(r.deferred, q) })
	}
	if b.Shuffle != nil && reads([]ir.Ref{b.Shuffle.S}) || b.To != b.Else && reads([]ir.Ref{b.P.Ref()}) {
		return true
	}
	for i := range b.Runs {
		for j := range b.Runs[i].Insts {
			in := &b.Runs[i].Insts[j]
			_, sources := in.Op.Registers()
			if in.Guard != nil {
				sources = append(sources, in.Guard.Ref())
			}
			if reads(sources) {
				return true
			}
		}
	}
	return false
}
