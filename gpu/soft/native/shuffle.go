package native

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Shuffle is an exchange of a whole warp before a block of a region: each lane receives
// the value of a lane that is known at compile time.
type Shuffle struct {
	D, S  ir.Ref // of 32 bits; D may be None
	OK    ir.Ref // a predicate, or None
	From  [ir.WarpSize]uint8
	Valid uint32 // the value of OK, a bit for each lane
}

// write writes the shuffle of the warp that begins at the current tile.
func (s *Shuffle) write(a *amd64.Assembler, l layout) {
	if s.D.Class == ir.Class32 {
		from := int32(l.offset(place{kind: file32, n: uint64(s.S.Slot)}))
		for t := range tilesOfWarp {
			gatherTile(a, amd64.Reg(t), s.From[t*ir.Tile:][:ir.Tile], from)
		}
		for t := range tilesOfWarp {
			to := amd64.Mem(reg32, int32(l.offset(place{kind: file32, n: uint64(s.D.Slot)}))+tile32*int32(t))
			a.Emit(amd64.VMOVDQU, to, amd64.Y(amd64.Reg(t)))
		}
	}
	if s.OK.Class == ir.ClassPred {
		at := int32(l.offset(place{kind: filePred, n: uint64(s.OK.Slot)}))
		a.Emit(amd64.MOV, amd64.Mem(regPreds, at).Index(regTile, 1).Size(4), amd64.Imm(int64(int32(s.Valid))))
	}
}

// gatherTile builds a vector of the values of eight lanes of the warp, whose register
// has a displacement in the file.
func gatherTile(a *amd64.Assembler, to amd64.Reg, lanes []uint8, file int32) {
	const some, index = amd64.Reg(4), amd64.Reg(5)
	row := lanes[0]%ir.Tile == 0 // a load from two tiles would wait until both are stored
	for i, l := range lanes {
		row = row && int(l) == int(lanes[0])+i
	}
	if row {
		a.Emit(amd64.VMOVDQU, amd64.Y(to), amd64.Mem(reg32, file+4*int32(lanes[0])))
		return
	}
	var within []byte
	for _, l := range lanes {
		within = binary.LittleEndian.AppendUint32(within, uint32(l%ir.Tile))
	}
	a.Emit(amd64.VMOVDQU, amd64.Y(index), amd64.At(a.Const(within)))
	first := true
	for t := range uint8(tilesOfWarp) {
		var mask int64 // of the lanes that read this tile
		for i, l := range lanes {
			if l/ir.Tile == t {
				mask |= 1 << i
			}
		}
		at := amd64.Mem(reg32, file+tile32*int32(t))
		switch {
		case mask == 0:
		case first:
			a.Emit(amd64.VPERMD, amd64.Y(to), amd64.Y(index), at)
			first = false
		default:
			a.Emit(amd64.VPERMD, amd64.Y(some), amd64.Y(index), at)
			a.Emit(amd64.VPBLENDD, amd64.Y(to), amd64.Y(to), amd64.Y(some), amd64.Imm(mask))
		}
	}
}
