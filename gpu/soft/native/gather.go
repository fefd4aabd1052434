package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// gather loads one element for each lane, at the addresses that the function address
// returns (locate). It continues at oneByOne if all active lanes may have one address
// of device memory, whose element is loaded once for their warp. Else some lanes of the
// warp have another address, and each lane loads its own element.
func (x *access) gather(a *amd64.Assembler, r regs, address func(half int) amd64.Reg, out, oneByOne amd64.Label) {
	x.locate(a, r, address, out)
	if x.Space <= ir.Global {
		x.unlessAlike(a, oneByOne)
	}
	x.collect(a, r, func(l int) amd64.Arg {
		a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, addressOffset+8*int32(l)))
		return amd64.Mem(offset, 0)
	})
}

// address returns the register with the addresses of four lanes.
func (r regs) address(half int) amd64.Reg { return r.use[half] }

// collect builds vectors of the lanes' elements, one lane after another.
func (x *access) collect(a *amd64.Assembler, r regs, element func(l int) amd64.Arg) {
	vectors, lanes := 1, ir.Tile
	if x.Size == 8 {
		vectors, lanes = 2, ir.Tile/2
	}
	for v := range vectors {
		low, high := r.def[v], r.temp[0]
		for i := range lanes / 2 {
			x.pick(a, low, i, element(lanes*v+i))
		}
		for i := range lanes / 2 {
			x.pick(a, high, i, element(lanes*v+lanes/2+i))
		}
		a.Emit(amd64.VINSERTI128, amd64.Y(low), amd64.Y(low), amd64.X(high), amd64.Imm(1))
	}
}

// unlessAlike continues at a label if the first and the last active lane have the same
// address.
func (x *access) unlessAlike(a *amd64.Assembler, alike amd64.Label) {
	first, last := amd64.Mem(regContext, addressOffset), amd64.Mem(regContext, addressOffset+8*(ir.Tile-1))
	if x.masked {
		a.Emit(amd64.TZCNT, amd64.D(lane), amd64.D(lanesLeft))
		a.Emit(amd64.LZCNT, amd64.D(room), amd64.D(lanesLeft))
		a.Emit(amd64.XOR, amd64.D(room), amd64.Imm(31))
		first, last = amd64.Mem(regContext, addressOffset).Index(lane, 8), amd64.Mem(regContext, addressOffset).Index(room, 8)
	}
	a.Emit(amd64.MOV, amd64.Q(offset), first)
	a.Emit(amd64.CMP, amd64.Q(offset), last)
	a.JumpIf(amd64.CondE, alike)
}

// pick loads an element into a position of a vector.
func (x *access) pick(a *amd64.Assembler, to amd64.Reg, at int, from amd64.Arg) {
	first, next := amd64.VMOVD, amd64.VPINSRD
	switch {
	case x.Size == 8:
		first, next = amd64.VMOVQ, amd64.VPINSRQ
	case x.Size < 4:
		a.Emit(x.narrow(), amd64.D(amd64.RAX), from)
		from = amd64.D(amd64.RAX)
	}
	if at == 0 {
		a.Emit(first, amd64.X(to), from)
	} else {
		a.Emit(next, amd64.X(to), amd64.X(to), from, amd64.Imm(int64(at)))
	}
}

// narrow returns the instruction that loads an element of one or two bytes.
func (x *access) narrow() *amd64.Inst {
	if x.Signed {
		return []*amd64.Inst{amd64.MOVSXB, amd64.MOVSXW}[x.Size-1]
	}
	return []*amd64.Inst{amd64.MOVZXB, amd64.MOVZXW}[x.Size-1]
}

// locateAll stores the address in memory of each lane's lowest element of a group. It
// continues at unsure unless everything that the group loads is in the window.
func (g *group) locateAll(a *amd64.Assembler, r regs, unsure amd64.Label) {
	first := g.Off + uint64(g.low)
	address := func(half int) amd64.Reg {
		t := amd64.Y(r.temp[0])
		a.Emit(amd64.VPADDQ, t, amd64.Y(r.use[half]), amd64.At(a.Broadcast64(first)))
		if g.Space > ir.Global { // whose addresses have 32 bits
			a.Emit(amd64.VPAND, t, t, amd64.At(a.Broadcast64(1<<32-1)))
		}
		return r.temp[0]
	}
	a.Emit(amd64.MOV, amd64.D(lanesLeft), amd64.Imm(0xff))
	g.locateTo(a, r, address, parkedOffset(g.number), uint64(g.high-g.low), unsure)
}

// collectParked loads rel bytes after the addresses that locateAll has stored. Lanes of
// such a group have different addresses, so each of them loads its own element.
func (x *groupedLoad) collectParked(a *amd64.Assembler, r regs, rel int32) {
	pointer := amd64.NoReg
	if x.group.walk != nil { // the stored addresses are relative to it
		if pointer = x.group.pointer(a); pointer == offset {
			pointer = room
			a.Emit(amd64.MOV, amd64.Q(room), amd64.Q(offset))
		}
	}
	parked := func(l int, more int32) amd64.Arg {
		a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, parkedOffset(x.group.number)+8*int32(l)))
		if pointer != amd64.NoReg {
			return amd64.Mem(offset, rel+more).Index(pointer, 1)
		}
		return amd64.Mem(offset, rel+more)
	}
	if x.N == ir.Tile/2 && x.Size == 4 {
		x.transpose(a, r, func(l int) amd64.Arg { return parked(l, 0) })
		return
	}
	vectors := len(r.def) / x.N
	for i := range x.N {
		one := r
		one.def = r.def[i*vectors:]
		x.collect(a, one, func(l int) amd64.Arg { return parked(l, int32(i)*int32(x.Size)) })
	}
}

// transpose loads four consecutive elements of 4 bytes for each lane.
func (x *access) transpose(a *amd64.Assembler, r regs, at func(l int) amd64.Arg) {
	d := []amd64.Arg{amd64.Y(r.def[0]), amd64.Y(r.def[1]), amd64.Y(r.def[2]), amd64.Y(r.def[3])}
	for l := range 4 {
		a.Emit(amd64.VMOVDQU, amd64.X(r.def[l]), at(l))
		a.Emit(amd64.VINSERTI128, d[l], d[l], at(l+4), amd64.Imm(1))
	}
	low, high, next := amd64.Y(r.temp[0]), amd64.Y(r.temp[1]), amd64.Y(r.temp[2])
	a.Emit(amd64.VPUNPCKLDQ, low, d[0], d[1])
	a.Emit(amd64.VPUNPCKHDQ, high, d[0], d[1])
	a.Emit(amd64.VPUNPCKLDQ, next, d[2], d[3])
	a.Emit(amd64.VPUNPCKHDQ, d[3], d[2], d[3])
	a.Emit(amd64.VPUNPCKLQDQ, d[0], low, next)
	a.Emit(amd64.VPUNPCKHQDQ, d[1], low, next)
	a.Emit(amd64.VPUNPCKLQDQ, d[2], high, d[3])
	a.Emit(amd64.VPUNPCKHQDQ, d[3], high, d[3])
}

// parkElement stores an element of a lane, which is in RAX, to the context.
func (x *access) parkElement(a *amd64.Assembler, i int) {
	if x.Size == 8 {
		a.Emit(amd64.MOV, x.parked(i, 0).Index(lane, 8), amd64.Q(amd64.RAX))
	} else {
		a.Emit(amd64.MOV, x.parked(i, 0).Index(lane, 4), amd64.D(amd64.RAX))
	}
}
