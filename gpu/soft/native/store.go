package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// emitStore stores all lanes at once if all are active and their addresses are
// consecutive. Else it checks all lanes before it stores the first, and stores lane by
// lane. It leaves if lanes have the same address of device memory: a warp's store to
// one address is one store (gpu/soft/exec).
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
	x.parkData(a, data)
	x.locate(a, r, r.address, out)
	if x.Space <= ir.Global {
		x.distinct(a, r, out)
	}
	x.scatter(a)
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

// parkData stores the elements to be stored to the context.
func (x *access) parkData(a *amd64.Assembler, data []amd64.Reg) {
	vectors := len(data) / x.N
	for i, d := range data {
		a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, elementOffset(i/vectors)+32*int32(i%vectors)), amd64.Y(d))
	}
}

// storeElement stores an element from the context, where it was stored as part of a
// vector. Of an element of 4 bytes it loads no more than these: a load of 8 bytes may
// end behind the vector, or be in both of its halves, and then it waits until the vector
// is in the cache.
func (x *access) storeElement(a *amd64.Assembler, to, from amd64.Arg) {
	if x.Size == 8 {
		a.Emit(amd64.MOV, amd64.Q(amd64.RAX), from)
	} else {
		a.Emit(amd64.MOV, amd64.D(amd64.RAX), from)
	}
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
