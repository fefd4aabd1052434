package ops

// TransposeTile transposes a tile of 8 by 8 elements of 16 bits in a register of a warp's
// lanes: lane 4r+c has the elements (r, 2c) and (r, 2c+1) (PTX ISA, ldmatrix).
func TransposeTile(words *[WarpLanes]uint32) {
	from := *words
	for l := range words {
		row, shift := l/4, uint(l/4%2)*16
		low, high := from[8*(l%4)+row/2]>>shift, from[8*(l%4)+4+row/2]>>shift
		words[l] = low&0xffff | high<<16
	}
}
