package ops

// A matrix in memory consists of lines: its rows, or with .col its columns.

// Lines returns how many lines a fragment's matrix has, and the bytes of one.
func (f *Fragment) Lines(col bool) (n int, bytes uint64) {
	n, length := f.Rows, f.Cols
	if col {
		n, length = length, n
	}
	return n, uint64(length*f.Type.Bits) / 8
}

// StrideBits returns the size in bits of the unit of a matrix's stride.
func (f *Fragment) StrideBits() int {
	if f.Type.Name == "b1" {
		return 1
	}
	return f.Type.Bits
}

// at returns the line of an element, and its first bit there.
func (f *Fragment) at(lane, reg, e int, col bool) (line, bit int) {
	row, c := f.place(lane, reg, e)
	if col {
		row, c = c, row
	}
	return row, c * f.Type.Bits
}

// Stripe is where the lanes' words of a register are in memory if every four lanes have
// adjacent words of one line: those of lanes 0 to 3 in line Line from byte At on, and
// those of each next four lanes in the next line.
type Stripe struct{ Line, At int }

// Stripes returns the words of each register in lines, or nil if they are not adjacent.
func (f *Fragment) Stripes(col bool) []Stripe {
	stripes := make([]Stripe, f.Regs)
	width := f.Type.Bits * f.Each()
	for reg := range f.Regs {
		first, start := f.at(0, reg, 0, col)
		if width < 32 || start%8 != 0 {
			return nil
		}
		stripes[reg] = Stripe{first, start / 8}
		for lane := range WarpLanes {
			for e := range f.Each() {
				line, bit := f.at(lane, reg, e, col)
				if line != first+lane/4 || bit != start+lane%4*width+e*f.Type.Bits {
					return nil
				}
			}
		}
	}
	return stripes
}

// Load reads a fragment from lines.
func (f *Fragment) Load(r *Registers, slots Slots, lines [][]byte, col bool) {
	for reg := range f.Regs {
		for lane := range WarpLanes {
			v := uint64(0)
			for e := range f.Each() {
				line, bit := f.at(lane, reg, e, col)
				x := uint64(0)
				for i, b := range lines[line][bit/8:][:(f.Type.Bits+7)/8] {
					x |= uint64(b) << (8 * i)
				}
				x = x >> (bit % 8) & (^uint64(0) >> (64 - f.Type.Bits))
				v |= x << (e * f.Type.Bits)
			}
			f.Type.set(r, slots[reg], lane, v)
		}
	}
}

// Store writes a fragment, whose elements have whole bytes, to lines.
func (f *Fragment) Store(lines [][]byte, r *Registers, slots Slots, col bool) {
	for reg := range f.Regs {
		for lane := range WarpLanes {
			for e := range f.Each() {
				line, bit := f.at(lane, reg, e, col)
				v := f.Type.get(r, slots[reg], lane) >> (e * f.Type.Bits)
				for i := range f.Type.Bits / 8 {
					lines[line][bit/8+i] = byte(v >> (8 * i))
				}
			}
		}
	}
}
