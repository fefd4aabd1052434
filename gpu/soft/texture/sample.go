package texture

import (
	"encoding/binary"
	"math"
)

// Simple reports whether Sample and Texel are those of the texture: they have one level
// of one or two dimensions.
func (t *Texture) Simple() bool {
	return t.Dims <= 2 && len(t.Levels) == 1 && !t.Cube && !t.SRGB
}

// Sample sets v to the result of Fetch at a position of a Simple texture, without
// offsets. It reports false if a texel has no memory, such as the border, and Fetch must
// be used.
func (t *Texture) Sample(mem []byte, x, y float32, layer uint32, v *[4]uint32) bool {
	l := &t.Levels[0]
	px, py := t.position(0, x, 0, l.Width), 0.0
	if t.Dims == 2 {
		py = t.position(1, y, 0, l.Height)
	}
	if !t.Filtered || t.Linear || t.raw() {
		i, j := int64(math.Floor(px)), int64(math.Floor(py))
		x, inX := t.index(0, i, l.Width)
		y, inY := t.index(1, j, l.Height)
		return inX && inY && (!t.Linear || x == uint64(i)) && t.read(mem, t.at(l, x, y, 0, uint64(min(layer, t.Layers-1))), v)
	}
	i, right := between(px)
	j, below := int64(0), int64(0)
	if t.Dims == 2 {
		j, below = between(py)
	}
	if right == 0 && below == 0 { // the center of a texel
		x, inX := t.index(0, i, l.Width)
		y, inY := t.index(1, j, l.Height)
		if !inX || !inY || !t.read(mem, t.at(l, x, y, 0, uint64(min(layer, t.Layers-1))), v) {
			return false
		}
		for c := range v {
			if v[c] == 1<<31 { // a sum that begins with 0 is not -0
				v[c] = 0
			}
		}
		return true
	}
	var columns, rows [2]uint64
	if !t.pair(0, i, l.Width, &columns) || t.Dims == 2 && !t.pair(1, j, l.Height, &rows) {
		return false
	}
	first := t.at(l, 0, 0, 0, uint64(min(layer, t.Layers-1)))
	size := t.Format.Bytes()
	x0, x1, y0, y1 := columns[0]*size, columns[1]*size, rows[0]*l.Pitch, rows[1]*l.Pitch
	return t.weigh(mem, [4]uint64{first + y0 + x0, first + y0 + x1, first + y1 + x0, first + y1 + x1}, right, below, v)
}

// weigh sets v to the weighted sum of four texels at offsets, and reports whether mem has
// those whose weight is not 0. right and below are the weights of the second column and
// row.
func (t *Texture) weigh(mem []byte, at [4]uint64, right, below int64, v *[4]uint32) bool {
	above := one - below
	upper, lower := (above*right+one/2)/one, (below*right+one/2)/one
	weights := [4]int64{above - upper, upper, below - lower, lower}
	var sum [4]float64
	for i, w := range weights {
		if w != 0 && !t.add(mem, at[i], float64(w)/one, &sum) {
			return false
		}
	}
	for c, n := range sum {
		v[c] = math.Float32bits(float32(n))
	}
	return true
}

// pair sets the texels of two successive indices of an axis, and reports whether both are in
// the image.
func (t *Texture) pair(axis int, i int64, n uint32, at *[2]uint64) bool {
	var first, second bool
	at[0], first = t.index(axis, i, n)
	at[1], second = t.index(axis, i+1, n)
	return first && second
}

// Texel is Sample for the index of a texel, which must be in the image.
func (t *Texture) Texel(mem []byte, x, y int32, layer uint32, v *[4]uint32) bool {
	l := &t.Levels[0]
	if t.Dims == 1 {
		y = 0
	}
	if uint32(x) >= l.Width || uint32(y) >= l.Height {
		return false
	}
	return t.read(mem, t.at(l, uint64(x), uint64(y), 0, uint64(min(layer, t.Layers-1))), v)
}

// fractions has the numbers of unsigned channels of 8 bits.
var fractions = func() (list [256]float64) {
	f := Format{Unsigned, 8, 1}
	for i := range list {
		list[i] = f.number(uint32(i))
	}
	return list
}()

// read sets v to the channels of a texel at an offset, and reports whether mem has it.
func (t *Texture) read(mem []byte, off uint64, v *[4]uint32) bool {
	if size := uint64(len(mem)); off > size || size-off < t.Format.Bytes() {
		return false
	}
	b := mem[off:]
	*v = [4]uint32{}
	if t.Format == (Format{Float, 32, 1}) {
		if v[0] = binary.LittleEndian.Uint32(b); v[0]<<1 > 0xff<<24 {
			v[0] |= 1 << 22 // a NaN is quiet after conversions
		}
		return true
	}
	raw := t.raw()
	for c := range int(t.Format.Channels) {
		if v[c] = t.Format.channel(b, c); !raw {
			v[c] = math.Float32bits(float32(t.Format.number(v[c])))
		}
	}
	return true
}

// add adds the weighted channels of a texel at an offset, and reports whether mem has
// it.
func (t *Texture) add(mem []byte, off uint64, weight float64, sum *[4]float64) bool {
	if size := uint64(len(mem)); off > size || size-off < t.Format.Bytes() {
		return false
	}
	b := mem[off:]
	switch {
	case t.Format.Kind == Float && t.Format.Bits == 32:
		for c := range int(t.Format.Channels) {
			sum[c] += weight * float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*c:])))
		}
		return true
	case t.Format.Kind == Unsigned && t.Format.Bits == 8:
		for c := range int(t.Format.Channels) {
			sum[c] += weight * fractions[b[c]]
		}
		return true
	}
	for c := range int(t.Format.Channels) {
		sum[c] += weight * t.Format.number(t.Format.channel(b, c))
	}
	return true
}
