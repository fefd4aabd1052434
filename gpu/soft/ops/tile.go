package ops

// Tile is a matrix of 8 by 8 elements of 16 bits, as ldmatrix, stmatrix and movmatrix
// move it: each lane has two adjacent elements of a row (PTX ISA, "Warp Level Matrix
// Instructions": ldmatrix).
type Tile [8][8]uint16

// Word returns the elements of a lane, or, with trans, those of the transposed matrix.
func (t *Tile) Word(lane int, trans bool) uint32 {
	r, c := lane/4, lane%4*2
	if trans {
		return uint32(t[c][r]) | uint32(t[c+1][r])<<16
	}
	return uint32(t[r][c]) | uint32(t[r][c+1])<<16
}

// SetWord sets the elements that Word returns.
func (t *Tile) SetWord(lane int, trans bool, v uint32) {
	r, c := lane/4, lane%4*2
	if trans {
		t[c][r], t[c+1][r] = uint16(v), uint16(v>>16)
		return
	}
	t[r][c], t[r][c+1] = uint16(v), uint16(v>>16)
}
