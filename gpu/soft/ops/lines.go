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

// Load reads a fragment from lines.
func (f *Fragment) Load(r Registers, lines [][]byte, col bool) {
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
			r[reg][lane] = v
		}
	}
}

// Store writes a fragment, whose elements have whole bytes, to lines.
func (f *Fragment) Store(lines [][]byte, r Registers, col bool) {
	for reg := range f.Regs {
		for lane := range WarpLanes {
			for e := range f.Each() {
				line, bit := f.at(lane, reg, e, col)
				v := r[reg][lane] >> (e * f.Type.Bits)
				for i := range f.Type.Bits / 8 {
					lines[line][bit/8+i] = byte(v >> (8 * i))
				}
			}
		}
	}
}
