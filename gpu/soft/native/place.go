package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
)

// place is where a vector is stored if it is in no register.
type place struct {
	kind placeKind
	n    uint64 // a register, or a constant of 64 bits
	half uint8  // of a 64-bit register
	tile uint8  // after the current tile
}

type placeKind uint8

const (
	file32   placeKind = iota // a register of 32 bits
	file64                    // half a tile's lanes of one of 64 bits
	filePred                  // a predicate
	active                    // the mask of active lanes
	constant
	spill // in the context
)

// The registers with fixed contents in generated code. RAX, RBX and R11 to R13 are free
// within one instruction.
const (
	regContext = amd64.RDI
	reg32      = amd64.RSI // the 32-bit file at the tile
	reg64      = amd64.RDX // the 64-bit file at the tile
	regTile    = amd64.RCX // the tile, and the byte of its lanes in a predicate
	regPreds   = amd64.R8
	regActive  = amd64.R9
	regEnd     = amd64.R10 // the tile after the last
)

// The sizes in bytes of a tile's part of a register, and of a predicate, in the
// register files.
const (
	tile32    = 32
	tile64    = 64
	predBytes = 128
)

// layout describes the register files of a machine.
type layout struct{ lanes uint64 }

// offset returns the offset of a register in its file.
func (l layout) offset(p place) uint64 {
	switch p.kind {
	case file32:
		return p.n*l.lanes*4 + uint64(p.tile)*tile32
	case file64:
		return p.n*l.lanes*8 + uint64(p.tile)*tile64 + uint64(p.half)*32
	case filePred:
		return p.n*predBytes + uint64(p.tile)
	}
	return 0
}

// memory returns a place as an operand. The place must not be a predicate.
func (l layout) memory(a *amd64.Assembler, p place) amd64.Arg {
	switch p.kind {
	case file32:
		return amd64.Mem(reg32, int32(l.offset(p)))
	case file64:
		return amd64.Mem(reg64, int32(l.offset(p)))
	case constant:
		return amd64.At(a.Broadcast64(p.n))
	}
	return amd64.Mem(regContext, spillOffset+32*int32(p.n))
}

// bits returns the byte with the bits of eight lanes as a memory operand.
func (l layout) bits(p place) amd64.Arg {
	if p.kind == active {
		return amd64.Mem(regActive, 0).Index(regTile, 1)
	}
	return amd64.Mem(regPreds, int32(l.offset(p))).Index(regTile, 1)
}

// laneBits has bit i set in lane i.
var laneBits = []byte{1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0, 0, 32, 0, 0, 0, 64, 0, 0, 0, 128, 0, 0, 0}

func (l layout) load(a *amd64.Assembler, r amd64.Reg, p place) {
	if p.kind != filePred && p.kind != active {
		a.Emit(amd64.VMOVDQU, amd64.Y(r), l.memory(a, p))
		return
	}
	bits := amd64.At(a.Const(laneBits))
	a.Emit(amd64.MOVZXB, amd64.D(amd64.RAX), l.bits(p))
	a.Emit(amd64.VMOVD, amd64.X(r), amd64.D(amd64.RAX))
	a.Emit(amd64.VPBROADCASTD, amd64.Y(r), amd64.X(r))
	a.Emit(amd64.VPAND, amd64.Y(r), amd64.Y(r), bits)
	a.Emit(amd64.VPCMPEQD, amd64.Y(r), amd64.Y(r), bits)
}

func (l layout) store(a *amd64.Assembler, p place, r amd64.Reg) {
	if p.kind != filePred {
		a.Emit(amd64.VMOVDQU, l.memory(a, p), amd64.Y(r))
		return
	}
	a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), amd64.Y(r))
	a.Emit(amd64.MOV, l.bits(p), amd64.B(amd64.RAX))
}
