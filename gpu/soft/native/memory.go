package native

import (
	"encoding/binary"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Loads and stores. An access that is out of its window, is misaligned, or must be a
// single access for the whole warp leaves the run before the instruction, with the
// results of all instructions before it in the register files. The caller continues
// there.

// maxElements is the maximum number of elements of a vector access.
const maxElements = 4

// accessible reports whether an access can be in a run. A generic address outside of
// device memory is out of its window.
func accessible(a *ir.Access) bool {
	return a.N <= maxElements && slices.Contains([]uint64{1, 2, 4, 8}, a.Size)
}

// loadable reports whether all destinations of a load are large enough for its
// elements.
func loadable(o *ir.Load) bool {
	for _, d := range o.D {
		if d.Class == ir.ClassPred || d.Class == ir.Class32 && o.Size == 8 {
			return false
		}
	}
	return accessible(&o.Access)
}

func storable(o *ir.Store) bool {
	for _, s := range o.S {
		if s.Class == ir.ClassPred || s.Class == ir.ClassNone || s.Class == ir.Class32 && o.Size == 8 {
			return false
		}
	}
	return accessible(&o.Access) && o.Space != ir.Param
}

// access is the state of the compilation of a load or store.
type access struct {
	*ir.Access
	window int32     // of the context
	exit   int       // the number of the instruction
	memo   int       // index of the first memo of a load
	step   int       // of a load of device memory in a region: index in Context.steps
	tile   int       // of a body for all tiles of a warp
	at     amd64.Reg // address in memory that it reads at, or relative to
	local  uint64    // bytes of a lane's local memory
	masked bool
	quick  *builder // for a quick body, which falls back to the general one
	of     *segment // of a region, or nil
}

// address returns the addresses of the lanes with the offset. Those of shared memory
// and of parameters have 32 bits (gpu/soft/exec).
func (b *builder) address(a *ir.Access) value {
	v := b.base(a)
	change := func(in *amd64.Inst, k uint64) {
		v = value{ir.Class64, b.op(in, v.lo, b.k64(k)), b.op(in, v.hi, b.k64(k))}
	}
	if a.Off != 0 {
		change(amd64.VPADDQ, a.Off)
	}
	if a.Space > ir.Global {
		change(amd64.VPAND, 1<<32-1)
	}
	return v
}

// base returns the addresses of the lanes without the offset.
func (b *builder) base(a *ir.Access) value {
	v := b.settle(b.read(a.Base))
	if v.class == ir.Class64 {
		return v
	}
	x, ok := b.widened[v.lo]
	if !ok {
		x = b.extend(amd64.VPMOVZXDQ, v.lo)
		b.widened[v.lo] = x
	}
	return x
}

// access prepares an access: it stores the results of the instructions before it to the
// register files, and returns its operands, with the mask of active lanes.
func (b *builder) access(x *access, in *ir.Inst, o *Options) []id {
	v := b.address(x.Access)
	mask := b.activeMask(in, o)
	x.masked = len(mask) > 0
	b.mayLeave(x.exit, o)
	return append([]id{v.lo, v.hi}, mask...)
}

// activeMask returns the mask of the lanes that execute an instruction, or none if all
// do.
func (b *builder) activeMask(in *ir.Inst, o *Options) []id {
	var mask []id
	if o.Masked {
		mask = append(mask, b.in(place{kind: active}))
	}
	if in.Guard != nil {
		mask = append(mask, b.pred(*in.Guard))
	}
	if len(mask) == 2 {
		mask = []id{b.op(amd64.VPAND, mask[0], mask[1])}
	}
	return mask
}

func (b *builder) newAccess(a *ir.Access, index int, o *Options) access {
	x := access{Access: a, window: b.window(a, index), exit: index, at: offset, local: o.LocalBytes, of: b.segment}
	if b.segment != nil && a.Space <= ir.Global {
		x.step, x.tile = b.segment.windows[len(b.globals)-1], b.tile
	}
	b.accesses++
	b.once = b.once || b.stored
	if b.quick {
		x.quick = b
	}
	return x
}

// mayLeave prepares for an instruction that may leave the run, which the caller adds
// next. A quick body has nothing in the register files then: the general one starts from
// the beginning.
func (b *builder) mayLeave(index int, o *Options) {
	if b.quick {
		b.left = len(b.code.Insts)
		return
	}
	b.flushResults(index, o)
}

// window returns the offset in the context of the window of an access.
func (b *builder) window(a *ir.Access, index int) int32 {
	switch a.Space {
	case ir.Shared:
		return sharedOffset
	case ir.Param:
		return paramsOffset
	case ir.Local:
		return 0
	}
	if b.tile == 0 { // else the instruction of another tile
		b.globals = append(b.globals, index)
	}
	if b.segment != nil {
		return b.segment.window(len(b.globals) - 1)
	}
	return globalOffset(len(b.globals) - 1)
}

func (b *builder) load(o *ir.Load, in *ir.Inst, index int, opt *Options) []value {
	each := 1
	if o.Size == 8 {
		each = 2
	}
	vectors := b.loadVectors(o, in, index, opt, each*o.N)
	var results []value
	for i, d := range o.D {
		if d.Class == ir.ClassNone {
			continue
		}
		v := value{class: ir.Class32, lo: vectors[i*each]}
		switch {
		case each == 2:
			v = value{ir.Class64, vectors[2*i], vectors[2*i+1]}
		case d.Class == ir.Class64 && o.Signed:
			v = b.extend(amd64.VPMOVSXDQ, v.lo)
		case d.Class == ir.Class64:
			v = b.extend(amd64.VPMOVZXDQ, v.lo)
		}
		results = append(results, b.kept(v, o.Mask))
	}
	return results
}

// loadVectors adds the load itself.
func (b *builder) loadVectors(o *ir.Load, in *ir.Inst, index int, opt *Options, n int) []id {
	if b.steady != nil && b.steady.block != nil {
		return b.steadyLoad(n)
	}
	x := b.newAccess(&o.Access, index, opt)
	if o.Space == ir.Local {
		return b.add(regalloc.Inst{Uses: b.access(&x, in, opt), Temps: []regalloc.Class{0, 0, 0}, Early: true}, n, x.emitLocalLoad)
	}
	if b.warp != nil {
		return b.warpLoad(x, n)
	}
	x.memo = b.memos
	b.memos += o.N
	if b.quick && in.Guard == nil {
		if p, ok := b.fixed(x, opt); ok {
			b.mayLeave(index, opt)
			return b.add(regalloc.Inst{}, n, p.emit)
		}
		if l, ok := b.grouped(x); ok {
			if words, ok := b.combined(l, index); ok {
				return words
			}
			b.mayLeave(index, opt)
			if words, ok := b.together(l, index); ok {
				return words
			}
			return b.add(regalloc.Inst{Temps: []regalloc.Class{0, 0, 0}}, n, l.emit)
		}
	}
	uses := b.access(&x, in, opt)
	return b.add(regalloc.Inst{Uses: uses, Temps: []regalloc.Class{0, 0, 0}, Early: true}, n, x.emitLoad)
}

// kept returns a value with the bits of a mask.
func (b *builder) kept(v value, mask uint64) value {
	if v.class == ir.Class32 {
		if uint32(mask) != 1<<32-1 {
			v.lo = b.and(v.lo, uint32(mask))
		}
		return v
	}
	if mask != 1<<64-1 {
		v.lo, v.hi = b.op(amd64.VPAND, v.lo, b.k64(mask)), b.op(amd64.VPAND, v.hi, b.k64(mask))
	}
	return v
}

func (b *builder) store(o *ir.Store, in *ir.Inst, index int, opt *Options) {
	var data []id
	for _, s := range o.S {
		data = append(data, b.elements(o, s)...)
	}
	b.stores = true
	if b.steady != nil && b.steady.block != nil {
		b.steadyStore(data)
		return
	}
	x := b.newAccess(&o.Access, index, opt)
	uses := b.access(&x, in, opt)
	emit := x.emitStore
	if o.Space == ir.Local {
		emit = x.emitLocalStore
		b.localStore()
	}
	b.add(regalloc.Inst{Uses: append(uses, data...), Temps: []regalloc.Class{0, 0, 0}}, 0, emit)
}

// elements returns the vectors with the lanes' elements of a register that is stored.
func (b *builder) elements(o *ir.Store, s ir.Ref) []id {
	v := b.settle(b.read(s))
	switch {
	case o.Size == 8:
		return []id{v.lo, v.hi}
	case v.class == ir.Class64:
		return []id{b.low(v)}
	}
	return []id{v.lo}
}

// Scratch registers of an access.
const (
	lanesLeft = amd64.RBX // a bit for each active lane
	offset    = amd64.R11 // in the window
	lane      = amd64.R12
	room      = amd64.R13 // bytes of the window from the offset on
)

// mask loads the active lanes to lanesLeft. It continues at none if there are none.
func (x *access) mask(a *amd64.Assembler, r regs, none amd64.Label) {
	if !x.masked {
		a.Emit(amd64.MOV, amd64.D(lanesLeft), amd64.Imm(0xff))
		return
	}
	a.Emit(amd64.VMOVMSKPS, amd64.D(lanesLeft), amd64.Y(r.use[2]))
	a.Emit(amd64.TEST, amd64.D(lanesLeft), amd64.D(lanesLeft))
	a.JumpIf(amd64.CondE, none)
}

// unless continues at a label if the addresses are not those of the first lane plus
// multiples of a stride.
func unless(a *amd64.Assembler, r regs, stride uint64, no amd64.Label) {
	t, u := amd64.Y(r.temp[0]), amd64.Y(r.temp[1])
	lo, hi := amd64.Y(r.use[0]), amd64.Y(r.use[1])
	a.Emit(amd64.VPBROADCASTQ, t, amd64.X(r.use[0]))
	if stride == 0 {
		a.Emit(amd64.VPCMPEQQ, u, t, lo)
		a.Emit(amd64.VPCMPEQQ, t, t, hi)
	} else {
		a.Emit(amd64.VPADDQ, u, t, amd64.At(strides(a, 0, stride)))
		a.Emit(amd64.VPADDQ, t, t, amd64.At(strides(a, 4, stride)))
		a.Emit(amd64.VPCMPEQQ, u, u, lo)
		a.Emit(amd64.VPCMPEQQ, t, t, hi)
	}
	a.Emit(amd64.VPAND, t, t, u)
	a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), t)
	a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(0xff))
	a.JumpIf(amd64.CondNE, no)
}

func strides(a *amd64.Assembler, first, stride uint64) amd64.Label {
	var b []byte
	for i := range uint64(4) {
		b = binary.LittleEndian.AppendUint64(b, (first+i)*stride)
	}
	return a.Const(b)
}

// inside converts the address in offset to the address in memory. It continues at no if
// not all of the bytes there are in the window, and at misaligned if the address is
// misaligned.
func (x *access) inside(a *amd64.Assembler, bytes uint64, no, misaligned amd64.Label) {
	if align := x.Size * uint64(x.N); align > 1 {
		a.Emit(amd64.TEST, amd64.D(offset), amd64.Imm(int64(align-1)))
		a.JumpIf(amd64.CondNE, misaligned)
	}
	a.Emit(amd64.SUB, amd64.Q(offset), amd64.Mem(regContext, x.window+windowBase))
	a.Emit(amd64.MOV, amd64.Q(room), amd64.Mem(regContext, x.window+windowSize))
	a.Emit(amd64.SUB, amd64.Q(room), amd64.Q(offset))
	a.JumpIf(amd64.CondB, no)
	a.Emit(amd64.CMP, amd64.Q(room), amd64.Imm(int64(bytes)))
	a.JumpIf(amd64.CondB, no)
	a.Emit(amd64.ADD, amd64.Q(offset), amd64.Mem(regContext, x.window+windowData))
}

// leave writes code that leaves the run, or falls back to the general body.
func (x *access) leave(a *amd64.Assembler, l amd64.Label) {
	a.Bind(l)
	if x.quick != nil {
		a.Jump(x.quick.general)
		return
	}
	if x.of != nil {
		x.of.leave(a, x.exit)
		return
	}
	a.Emit(amd64.MOV, amd64.Mem(regContext, tileOffset), amd64.Q(regTile))
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Imm(int64(x.exit)+1))
	a.Emit(amd64.RET)
}

// park stores the addresses to the context, from which they are read lane by lane.
func park(a *amd64.Assembler, r regs) {
	a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, addressOffset), amd64.Y(r.use[0]))
	a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, addressOffset+32), amd64.Y(r.use[1]))
}

// each emits f for every lane in lanesLeft, with its address, which is in the context,
// in offset.
func each(a *amd64.Assembler, from int32, f func()) {
	turn := a.Label()
	a.Bind(turn)
	a.Emit(amd64.TZCNT, amd64.D(lane), amd64.D(lanesLeft))
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, from).Index(lane, 8))
	f()
	a.Emit(amd64.BLSR, amd64.D(lanesLeft), amd64.D(lanesLeft))
	a.JumpIf(amd64.CondNE, turn)
}

// ahead is the distance, after the bytes that consecutive lanes access, of the bytes
// that are prefetched: two warps' words of 32 bits. The processor's own prefetching is
// worse where a block of threads accesses a few cache lines of each of many rows.
const ahead = 256

// prefetch prefetches the memory ahead of some bytes of device memory, rel after an
// address. It needs no bounds check, as it cannot fault.
func (x *access) prefetch(a *amd64.Assembler, from amd64.Reg, rel, bytes int64) {
	const line = 64
	if x.Space > ir.Global {
		return
	}
	for n := int32(0); n < int32(bytes); n += line {
		a.Emit(amd64.PREFETCHT0, amd64.Mem(from, int32(rel)+ahead+n))
	}
}

// prefetchNext prefetches what a tile accesses next, in a body for all tiles of a warp, if
// the addresses of its accesses change by the same step each time: a loop that a barrier
// interrupts often reads one row of a matrix after another, which the processor's own
// prefetching does not predict, as the tiles of all warps read their parts of a row in
// between. The address in memory is in offset. It needs no bounds check, as it cannot
// fault.
func (x *access) prefetchNext(a *amd64.Assembler) {
	if x.Space > ir.Global || x.step >= maxSteps {
		return
	}
	last := amd64.Mem(regContext, stepOffset(x.step)+8*int32(x.tile)).Index(regTile, 8)
	a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.Mem(offset, 0).Index(offset, 1))
	a.Emit(amd64.SUB, amd64.Q(amd64.RAX), last)
	a.Emit(amd64.MOV, last, amd64.Q(offset))
	a.Emit(amd64.PREFETCHT0, amd64.Mem(amd64.RAX, 0))
}
