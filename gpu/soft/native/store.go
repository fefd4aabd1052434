package native

import "github.com/basalt-gpu/basalt/gpu/soft/amd64"

// previous is the address of the lane before, in a store lane by lane.
const previous = amd64.RAX

// emitStore stores all lanes at once where all take part and their addresses are
// consecutive. Else it looks at all lanes before it stores the first, and leaves
// unless their addresses ascend: a store of several lanes to one address is one
// store.
func (x *access) emitStore(a *amd64.Assembler, r regs) {
	lanes, done, out := a.Label(), a.Label(), a.Label()
	data := r.use[2:]
	if x.masked {
		data = r.use[3:]
	}
	x.mask(a, r, done)
	if each := x.Size * uint64(x.N); x.transposed() && x.Size >= 4 {
		a.Emit(amd64.CMP, amd64.D(lanesLeft), amd64.Imm(0xff))
		a.JumpIf(amd64.CondNE, lanes)
		unless(a, r, each, lanes)
		a.Emit(amd64.VMOVQ, amd64.Q(offset), amd64.X(r.use[0]))
		x.inside(a, 8*each, lanes, lanes)
		x.wideStore(a, r, data)
		a.Jump(done)
	}
	a.Bind(lanes)
	park(a, r)
	x.parkData(a, data)
	x.look(a, out)
	each(a, addressOffset, func() { x.put(a) })
	a.Jump(done)
	x.leave(a, out)
	a.Bind(done)
}

// wideStore stores the elements of eight lanes at offset.
func (x *access) wideStore(a *amd64.Assembler, r regs, data []amd64.Reg) {
	if x.N > 1 {
		x.scattered(a, r, data)
		return
	}
	for i, d := range data {
		a.Emit(amd64.VMOVDQU, amd64.Mem(offset, 32*int32(i)), amd64.Y(d))
	}
}

// parkData puts what is stored into the context.
func (x *access) parkData(a *amd64.Assembler, data []amd64.Reg) {
	vectors := len(data) / x.N
	for i, d := range data {
		a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, elementOffset(i/vectors)+32*int32(i%vectors)), amd64.Y(d))
	}
}

// look goes on at out if a lane may not store. It leaves lanesLeft as it was, and
// in the place of each lane's address that of its memory.
func (x *access) look(a *amd64.Assembler, out amd64.Label) {
	a.Emit(amd64.MOV, amd64.Mem(regContext, savedOffset), amd64.Q(lanesLeft))
	a.Emit(amd64.XOR, amd64.D(previous), amd64.D(previous))
	each(a, addressOffset, func() {
		x.inside(a, x.Size*uint64(x.N), out, out)
		a.Emit(amd64.CMP, amd64.Q(offset), amd64.Q(previous))
		a.JumpIf(amd64.CondBE, out)
		a.Emit(amd64.MOV, amd64.Q(previous), amd64.Q(offset))
		a.Emit(amd64.MOV, amd64.Mem(regContext, addressOffset).Index(lane, 8), amd64.Q(offset))
	})
	a.Emit(amd64.MOV, amd64.Q(lanesLeft), amd64.Mem(regContext, savedOffset))
}

// put stores the elements of one lane.
func (x *access) put(a *amd64.Assembler) {
	for i := range x.N {
		scale := uint8(4)
		if x.Size == 8 {
			scale = 8
		}
		a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, elementOffset(i)).Index(lane, scale))
		to := amd64.Mem(offset, int32(i)*int32(x.Size))
		switch x.Size {
		case 1:
			a.Emit(amd64.MOV, to, amd64.B(amd64.RAX))
		case 2:
			a.Emit(amd64.MOV, to, amd64.W(amd64.RAX))
		case 4:
			a.Emit(amd64.MOV, to, amd64.D(amd64.RAX))
		default:
			a.Emit(amd64.MOV, to, amd64.Q(amd64.RAX))
		}
	}
}
