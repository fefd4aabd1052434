package native

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Accesses of lanes whose addresses are not consecutive: all addresses are checked at
// once, and then each lane has its own load or store.

// locate computes the addresses in memory of the lanes' elements and stores them to the
// context in place of their addresses in the program. It continues at out if an active
// lane accesses memory outside of the window, or is misaligned. Inactive lanes get the
// address of the context's sink. address returns a register with the addresses of four
// lanes, which may be the first temporary one.
func (x *access) locate(a *amd64.Assembler, r regs, address func(half int) amd64.Reg, out amd64.Label) {
	x.locateTo(a, r, address, addressOffset, 0, out)
}

// locateTo is locate, to another place in the context, for elements that are followed
// by more bytes.
func (x *access) locateTo(a *amd64.Assembler, r regs, address func(half int) amd64.Reg, to int32, more uint64, out amd64.Label) {
	const wrong = lane
	t0, t1, t2 := amd64.Y(r.temp[0]), amd64.Y(r.temp[1]), amd64.Y(r.temp[2])
	x.greatest(a, x.Size*uint64(x.N)+more, out)
	a.Emit(amd64.XOR, amd64.D(wrong), amd64.D(wrong))
	for half := 1; half >= 0; half-- {
		at := amd64.Y(address(half))
		a.Emit(amd64.SHL, amd64.D(wrong), amd64.Imm(4))
		if align := x.Size * uint64(x.N); align > 1 { // the sum with 2^63-1 is negative unless the remainder is 0
			a.Emit(amd64.VPAND, t1, at, amd64.At(a.Broadcast64(align-1)))
			a.Emit(amd64.VPADDQ, t1, t1, amd64.At(a.Broadcast64(1<<63-1)))
			addSigns(a, wrong, t1)
		}
		spread64(a, r.temp[2], room)
		if x.Space == ir.Local {
			a.Emit(amd64.VMOVDQA, t0, at)
		} else {
			a.Emit(amd64.VPBROADCASTQ, t1, amd64.Mem(regContext, x.window+windowBase))
			a.Emit(amd64.VPSUBQ, t0, at, t1)
		}
		a.Emit(amd64.VPCMPGTQ, t1, t0, t2)
		a.Emit(amd64.VPOR, t1, t1, t0) // sizes are not negative
		addSigns(a, wrong, t1)
		x.addMemory(a, r, half)
		if x.masked {
			a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.Mem(regContext, sinkOffset))
			spread64(a, r.temp[2], amd64.RAX)
			a.Emit(amd64.VEXTRACTI128, amd64.X(r.temp[1]), amd64.Y(r.use[2]), amd64.Imm(int64(half)))
			a.Emit(amd64.VPMOVSXDQ, t1, amd64.X(r.temp[1]))
			a.Emit(amd64.VBLENDVPD, t0, t2, t0, t1)
		}
		a.Emit(amd64.VMOVDQU, amd64.Mem(regContext, to+32*int32(half)), t0)
	}
	a.Emit(amd64.TEST, amd64.D(wrong), amd64.D(lanesLeft))
	a.JumpIf(amd64.CondNE, out)
}

// greatest sets room to the greatest offset at which that many bytes are in the window.
func (x *access) greatest(a *amd64.Assembler, need uint64, out amd64.Label) {
	switch {
	case x.Space != ir.Local:
		a.Emit(amd64.MOV, amd64.Q(room), amd64.Mem(regContext, x.window+windowSize))
		a.Emit(amd64.SUB, amd64.Q(room), amd64.Imm(int64(need)))
		a.JumpIf(amd64.CondB, out)
	case x.local < need:
		a.Jump(out)
	default:
		a.Emit(amd64.MOV, amd64.D(room), amd64.Imm(int64(x.local-need)))
	}
}

// addMemory converts offsets of four lanes to addresses in memory.
func (x *access) addMemory(a *amd64.Assembler, r regs, half int) {
	t0, t1 := amd64.Y(r.temp[0]), amd64.Y(r.temp[1])
	if x.Space != ir.Local {
		a.Emit(amd64.VPBROADCASTQ, t1, amd64.Mem(regContext, x.window+windowData))
		a.Emit(amd64.VPADDQ, t0, t0, t1)
		return
	}
	a.Emit(amd64.IMUL, amd64.Q(offset), amd64.Q(regTile), amd64.Imm(int64(ir.Tile*x.local)))
	a.Emit(amd64.ADD, amd64.Q(offset), amd64.Mem(regContext, localOffset))
	spread64(a, r.temp[1], offset)
	a.Emit(amd64.VPADDQ, t0, t0, t1)
	a.Emit(amd64.VPADDQ, t0, t0, amd64.At(strides(a, uint64(4*half), x.local)))
}

// addSigns adds the signs of four lanes to a set.
func addSigns(a *amd64.Assembler, set amd64.Reg, v amd64.Arg) {
	a.Emit(amd64.VMOVMSKPD, amd64.D(amd64.RAX), v)
	a.Emit(amd64.OR, amd64.D(set), amd64.D(amd64.RAX))
}

func spread64(a *amd64.Assembler, to, from amd64.Reg) {
	a.Emit(amd64.VMOVQ, amd64.X(to), amd64.Q(from))
	a.Emit(amd64.VPBROADCASTQ, amd64.Y(to), amd64.X(to))
}

// distinct continues at out if two active lanes have the same address, or may have: it
// compares the low 32 bits.
func (x *access) distinct(a *amd64.Assembler, r regs, out amd64.Label) {
	v, same, t := amd64.Y(r.temp[0]), amd64.Y(r.temp[1]), amd64.Y(r.temp[2])
	a.Emit(amd64.VSHUFPS, v, amd64.Y(r.use[0]), amd64.Y(r.use[1]), amd64.Imm(0x88))
	if x.masked { // inactive lanes get addresses that are almost never used
		var nobody []byte
		for i := range uint32(ir.Tile) {
			nobody = binary.LittleEndian.AppendUint32(nobody, ^i)
		}
		a.Emit(amd64.VPERMQ, v, v, amd64.Imm(0xd8)) // in the order of the mask
		a.Emit(amd64.VMOVDQU, t, amd64.At(a.Const(nobody)))
		a.Emit(amd64.VBLENDVPS, v, t, v, amd64.Y(r.use[2]))
	}
	for by := range uint32(ir.Tile / 2) { // a distance of more than half a tile is less than that the other way round
		to := t
		if by == 0 {
			to = same
		}
		a.Emit(amd64.VMOVDQU, to, amd64.At(turned(a, by+1)))
		a.Emit(amd64.VPERMD, to, to, v)
		a.Emit(amd64.VPCMPEQD, to, to, v)
		if by > 0 {
			a.Emit(amd64.VPOR, same, same, t)
		}
	}
	a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), same)
	a.Emit(amd64.TEST, amd64.D(amd64.RAX), amd64.D(amd64.RAX))
	a.JumpIf(amd64.CondNE, out)
}

// turned returns the numbers of the lanes, rotated by that many positions.
func turned(a *amd64.Assembler, by uint32) amd64.Label {
	var b []byte
	for i := range uint32(ir.Tile) {
		b = binary.LittleEndian.AppendUint32(b, (i+by)%ir.Tile)
	}
	return a.Const(b)
}

// scatter stores the elements in the context at the addresses that locate has computed.
// If lanes have the same address, the last one stores last.
func (x *access) scatter(a *amd64.Assembler) {
	if x.N > 1 {
		each(a, addressOffset, func() {
			for i := range x.N {
				x.storeElement(a, amd64.Mem(offset, int32(i)*int32(x.Size)), x.parked(i, 0).Index(lane, uint8(max(x.Size, 4))))
			}
		})
		return
	}
	for l := range ir.Tile {
		a.Emit(amd64.MOV, amd64.Q(offset), amd64.Mem(regContext, addressOffset+8*int32(l)))
		x.storeElement(a, amd64.Mem(offset, 0), x.parked(0, l))
	}
}

// parked returns the location in the context of an element of a lane.
func (x *access) parked(i, l int) amd64.Arg {
	return amd64.Mem(regContext, elementOffset(i)+int32(max(x.Size, 4))*int32(l))
}
