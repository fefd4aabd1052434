package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// emitLoad emits one load for all lanes where their addresses are consecutive, a load
// of one element where they are equal, and else one load per lane.
func (x *access) emitLoad(a *amd64.Assembler, r regs) {
	one, lanes, alone, done, out := a.Label(), a.Label(), a.Label(), a.Label(), a.Label()
	x.mask(a, r, done)
	if x.N == 1 {
		unless(a, r, x.Size, one)
		a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
		x.inside(a, 8*x.Size, lanes, lanes)
		x.wide(a, r, 0)
		a.Jump(done)
		a.Bind(one)
		unless(a, r, 0, lanes)
		a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
		x.inside(a, x.Size, lanes, lanes)
		x.once(a, 0)
		x.broadcast(a, r, 0)
		a.Jump(done)
	}
	a.Bind(lanes)
	if x.N == 1 {
		x.gather(a, r, r.address, out, alone)
		a.Jump(done)
	}
	if x.N > 1 || x.Space <= ir.Global {
		a.Bind(alone)
		park(a, r)
		x.eachLane(a, r, addressOffset, 0, out)
		a.Jump(done)
	}
	x.leave(a, out)
	a.Bind(done)
}

// eachLane loads lane by lane. from is the offset in the context of their addresses, to
// which more is added.
func (x *access) eachLane(a *amd64.Assembler, r regs, from, more int32, out amd64.Label) {
	each(a, from, func() {
		if more != 0 {
			a.Emit(amd64.ADD, amd64.Q(offset), amd64.Imm(int64(more)))
		}
		if x.Space > ir.Global { // whose addresses have 32 bits
			a.Emit(amd64.MOV, amd64.D(offset), amd64.D(offset))
		}
		x.inside(a, x.Size*uint64(x.N), out, out)
		for i := range x.N {
			x.once(a, i)
			x.parkElement(a, i)
		}
	})
	x.unpark(a, r)
}

// wide loads the elements of eight lanes, rel bytes after its address.
func (x *access) wide(a *amd64.Assembler, r regs, rel int32) {
	at := func(n int32) amd64.Arg { return amd64.Mem(x.at, rel+n) }
	switch x.Size {
	case 8:
		a.Emit(amd64.VMOVDQU, amd64.Y(r.def[0]), at(0))
		a.Emit(amd64.VMOVDQU, amd64.Y(r.def[1]), at(32))
	case 4:
		a.Emit(amd64.VMOVDQU, amd64.Y(r.def[0]), at(0))
	default:
		in := map[bool][]*amd64.Inst{false: {amd64.VPMOVZXBD, amd64.VPMOVZXWD}, true: {amd64.VPMOVSXBD, amd64.VPMOVSXWD}}
		a.Emit(in[x.Signed][x.Size-1], amd64.Y(r.def[0]), at(0))
	}
}

// once loads element i at offset to RAX, or takes it from the load of another lane of
// the warp from the same address.
func (x *access) once(a *amd64.Assembler, i int) {
	if x.Space > ir.Global { // not written by others meanwhile
		x.element(a, i)
		return
	}
	miss, have := a.Label(), a.Label()
	m := memoOffset(x.memo + i)
	a.Emit(amd64.MOV, amd64.Q(room), amd64.Q(regTile))
	a.Emit(amd64.SHR, amd64.Q(room), amd64.Imm(2))
	a.Emit(amd64.ADD, amd64.Q(room), amd64.Mem(regContext, warpOffset))
	a.Emit(amd64.CMP, amd64.Q(room), amd64.Mem(regContext, m+memoKey))
	a.JumpIf(amd64.CondNE, miss)
	a.Emit(amd64.CMP, amd64.Q(offset), amd64.Mem(regContext, m+memoAddress))
	a.JumpIf(amd64.CondNE, miss)
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, m+memoValue))
	a.Jump(have)
	a.Bind(miss)
	x.element(a, i)
	a.Emit(amd64.MOV, amd64.Mem(regContext, m+memoKey), amd64.Q(room))
	a.Emit(amd64.MOV, amd64.Mem(regContext, m+memoAddress), amd64.Q(offset))
	a.Emit(amd64.MOV, amd64.Mem(regContext, m+memoValue), amd64.Q(amd64.RAX))
	a.Bind(have)
}

// element loads element i at offset to RAX.
func (x *access) element(a *amd64.Assembler, i int) {
	at := amd64.Mem(offset, int32(i)*int32(x.Size))
	switch x.Size {
	case 8:
		a.Emit(amd64.MOV, amd64.Q(amd64.RAX), at)
	case 4:
		a.Emit(amd64.MOV, amd64.D(amd64.RAX), at)
	default:
		a.Emit(x.narrow(), amd64.D(amd64.RAX), at)
	}
}

// broadcast copies RAX to element i of all lanes.
func (x *access) broadcast(a *amd64.Assembler, r regs, i int) {
	if x.Size < 8 {
		a.Emit(amd64.VMOVD, amd64.X(r.def[i]), amd64.D(amd64.RAX))
		a.Emit(amd64.VPBROADCASTD, amd64.Y(r.def[i]), amd64.X(r.def[i]))
		return
	}
	lo, hi := r.def[2*i], r.def[2*i+1]
	a.Emit(amd64.VMOVQ, amd64.X(lo), amd64.Q(amd64.RAX))
	a.Emit(amd64.VPBROADCASTQ, amd64.Y(lo), amd64.X(lo))
	a.Emit(amd64.VMOVDQA, amd64.Y(hi), amd64.Y(lo))
}

// unpark loads the elements that the lanes have stored to the context.
func (x *access) unpark(a *amd64.Assembler, r regs) {
	for i := range x.N {
		at := elementOffset(i)
		if x.Size < 8 {
			a.Emit(amd64.VMOVDQU, amd64.Y(r.def[i]), amd64.Mem(regContext, at))
			continue
		}
		a.Emit(amd64.VMOVDQU, amd64.Y(r.def[2*i]), amd64.Mem(regContext, at))
		a.Emit(amd64.VMOVDQU, amd64.Y(r.def[2*i+1]), amd64.Mem(regContext, at+32))
	}
}
