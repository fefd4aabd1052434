package ops

// Fragment is how the lanes of a warp hold a matrix in registers (PTX ISA, "Warp
// Level Matrix Instructions": the layouts under "Matrix Fragments for mma"). A
// register holds elements that are neighbours, the first in its low bits.
type Fragment struct {
	Rows, Cols int
	Type       *Element
	Regs       int // of each lane
	// place is where an element of a register of a lane lies.
	place func(lane, reg, e int) (row, col int)
}

// Place returns the row and the column of element e of a register of a lane.
func (f *Fragment) Place(lane, reg, e int) (row, col int) { return f.place(lane, reg, e) }

// Each is how many elements a register holds.
func (f *Fragment) Each() int { return f.Type.each() }

// The fragments are made of parts of 8 rows or 8 columns: lane/4 is the row of a part
// of A or C and the column of one of B, and the four lanes of a row have neighbouring
// registers. A part is four registers deep.

// fragmentA is that of the multiplicand A, rows by depth. 16 rows are a tile, whose
// registers alternate between its upper and its lower half.
func fragmentA(rows, depth int, t *Element) Fragment {
	each := t.each()
	halves := min(rows, 16) / 8
	perTile := halves * depth / (4 * each)
	return Fragment{rows, depth, t, perTile * rows / (8 * halves), func(lane, reg, e int) (row, col int) {
		tile, r := reg/perTile, reg%perTile
		return 8*(halves*tile+r%halves) + lane/4, 4*each*(r/halves) + each*(lane%4) + e
	}}
}

// fragmentB is that of the multiplicand B, depth by columns.
func fragmentB(depth, cols int, t *Element) Fragment {
	each := t.each()
	perTile := depth / (4 * each)
	return Fragment{depth, cols, t, perTile * cols / 8, func(lane, reg, e int) (row, col int) {
		return 4*each*(reg%perTile) + each*(lane%4) + e, 8*(reg/perTile) + lane/4
	}}
}

// fragmentC is that of the accumulators C and D: each lane has two neighbours in each
// part of 8 by 8.
func fragmentC(rows, cols int, t *Element) Fragment {
	each := t.each()
	halves, across := min(rows, 16)/8, cols/8
	return Fragment{rows, cols, t, rows * cols / (32 * each), func(lane, reg, e int) (row, col int) {
		i := reg*each + e
		part := i / 2
		tile := part / halves
		return 8*(halves*(tile/across)+part%halves) + lane/4, 8*(tile%across) + 2*(lane%4) + i%2
	}}
}

// The f16 form of mma.m8n8k4 is four products, one for each lanes 4q to 4q+3 and 16+4q
// to 16+4q+3. Their matrices lie below each other.

// quadA is the A of these four; across says that a lane has a row, not a column.
func quadA(t *Element, across bool) Fragment {
	return Fragment{32, 4, t, 2, func(lane, reg, e int) (row, col int) {
		row, col = lane%4, 2*reg+e
		if !across {
			row, col = col, row
		}
		return 8*(lane%16/4) + 4*(lane/16) + row, col
	}}
}

// quadB is the B.
func quadB(t *Element, across bool) Fragment {
	return Fragment{16, 8, t, 2, func(lane, reg, e int) (row, col int) {
		row, col = lane%4, 2*reg+e
		if !across {
			row, col = col, row
		}
		return 4*(lane%16/4) + row, 4*(lane/16) + col
	}}
}

// quadC is the C or D.
func quadC(t *Element) Fragment {
	return Fragment{32, 8, t, 8 / t.each(), func(lane, reg, e int) (row, col int) {
		first := 8*(lane%16/4) + 4*(lane/16)
		if t.each() == 2 {
			return first + lane%4, 2*reg + e
		}
		return first + lane&1 + reg&2, reg&4 + lane&2 + reg&1
	}}
}

// repeated gives a fragment more registers, which hold its elements again: wmma has
// eight for f16, as on the first devices with it.
func (f Fragment) repeated(regs int) Fragment {
	distinct, place := f.Regs, f.place
	f.Regs = regs
	f.place = func(lane, reg, e int) (row, col int) { return place(lane, reg%distinct, e) }
	return f
}
