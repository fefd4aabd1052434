package ops

// Fragment is the layout of a matrix in the registers of a warp's lanes (PTX ISA, "Warp
// Level Matrix Instructions": the layouts under "Matrix Fragments for mma"). A register
// holds adjacent elements, the first in its low bits.
type Fragment struct {
	Rows, Cols int
	Type       *Element
	Regs       int // per lane
	// place returns the row and the column of an element of a register of a lane.
	place func(lane, reg, e int) (row, col int)
}

// Place returns the row and the column of element e of a register of a lane.
func (f *Fragment) Place(lane, reg, e int) (row, col int) { return f.place(lane, reg, e) }

// Each returns how many elements a register holds.
func (f *Fragment) Each() int { return f.Type.each() }

// The fragments consist of parts of 8 rows or 8 columns: lane/4 is the row in a part of
// A or C and the column in a part of B, and the four lanes of a row have adjacent
// registers. A part is four registers deep.

// fragmentA returns the fragment of the multiplicand A, rows by depth. 16 rows are a
// tile, whose registers alternate between its upper and its lower half.
func fragmentA(rows, depth int, t *Element) Fragment {
	each := t.each()
	halves := min(rows, 16) / 8
	perTile := halves * depth / (4 * each)
	return Fragment{rows, depth, t, perTile * rows / (8 * halves), func(lane, reg, e int) (row, col int) {
		tile, r := reg/perTile, reg%perTile
		return 8*(halves*tile+r%halves) + lane/4, 4*each*(r/halves) + each*(lane%4) + e
	}}
}

// fragmentB returns the fragment of the multiplicand B, depth by columns.
func fragmentB(depth, cols int, t *Element) Fragment {
	each := t.each()
	perTile := depth / (4 * each)
	return Fragment{depth, cols, t, perTile * cols / 8, func(lane, reg, e int) (row, col int) {
		return 4*each*(reg%perTile) + each*(lane%4) + e, 8*(reg/perTile) + lane/4
	}}
}

// fragmentC returns the fragment of the accumulators C and D: each lane has two
// adjacent elements in each part of 8 by 8.
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

// The f16 form of mma.m8n8k4 is four products, one for each set of lanes 4q to 4q+3 and
// 16+4q to 16+4q+3. The rows of their matrices follow each other.

// quadA returns the fragment of A of these four products. With across, a lane has a row
// instead of a column.
func quadA(t *Element, across bool) Fragment {
	return Fragment{32, 4, t, 2, func(lane, reg, e int) (row, col int) {
		row, col = lane%4, 2*reg+e
		if !across {
			row, col = col, row
		}
		return 8*(lane%16/4) + 4*(lane/16) + row, col
	}}
}

// quadB returns the fragment of B.
func quadB(t *Element, across bool) Fragment {
	return Fragment{16, 8, t, 2, func(lane, reg, e int) (row, col int) {
		row, col = lane%4, 2*reg+e
		if !across {
			row, col = col, row
		}
		return 4*(lane%16/4) + row, 4*(lane/16) + col
	}}
}

// quadC returns the fragment of C or D.
func quadC(t *Element) Fragment {
	return Fragment{32, 8, t, 8 / t.each(), func(lane, reg, e int) (row, col int) {
		first := 8*(lane%16/4) + 4*(lane/16)
		if t.each() == 2 {
			return first + lane%4, 2*reg + e
		}
		return first + lane&1 + reg&2, reg&4 + lane&2 + reg&1
	}}
}

// repeated returns a fragment with more registers, which hold its elements repeatedly:
// wmma has eight registers for f16, as on the first devices with it.
func (f Fragment) repeated(regs int) Fragment {
	distinct, place := f.Regs, f.place
	f.Regs = regs
	f.place = func(lane, reg, e int) (row, col int) { return place(lane, reg%distinct, e) }
	return f
}
