package texture

import "math"

// Detail is the way in which a fetch selects the level.
type Detail uint8

// The ways: the first level, a given one, or the one for the gradients from pixel to
// pixel (PTX ISA, "Texture Instructions: tex").
const (
	Base Detail = iota
	ByLevel
	ByGradient
)

// Query has the arguments of a fetch.
type Query struct {
	At     [3]float32
	Texel  [3]int32 // instead of At, with Whole
	Whole  bool
	Cube   bool // At is a direction, if the image is a cube map
	Layer  uint32
	Offset [3]int32 // in texels
	Detail Detail
	Level  float32
	DX, DY [3]float32 // gradients of At
}

// Texture is an image with its sampler.
type Texture struct {
	*Image
	Sampler
}

// value has the channels of a texel: numbers, or bits if integers are not converted.
type value struct {
	n    [4]float64
	bits [4]uint32
}

// raw reports whether a fetch returns integers.
func (t *Texture) raw() bool {
	return t.Format.Kind != Float && (t.Integers || t.Format.Bits == 32)
}

// Fetch returns the four channels of tex, each the bits of a binary32 or an integer.
// Channels that the format does not have are 0. mem has the image's bytes.
func (t *Texture) Fetch(mem []byte, q *Query) [4]uint32 {
	at, layer, flat := t.face(q)
	if q.Whole || q.Detail == Base || len(t.Levels) == 1 {
		return t.result(t.level(mem, 0, q, at, layer, flat))
	}
	first, weight := t.detail(q)
	if weight == 0 || t.raw() {
		return t.result(t.level(mem, first, q, at, layer, flat))
	}
	low, high := t.level(mem, first, q, at, layer, flat), t.level(mem, first+1, q, at, layer, flat)
	for c := range low.n {
		low.n[c] = ((one-float64(weight))*low.n[c] + float64(weight)*high.n[c]) / one
	}
	return t.result(low)
}

func (t *Texture) result(v value) [4]uint32 {
	if t.raw() {
		return v.bits
	}
	for c, n := range v.n {
		v.bits[c] = math.Float32bits(float32(n))
	}
	return v.bits
}

// detail returns the level of a fetch and the weight of the next level.
func (t *Texture) detail(q *Query) (level int, weight int64) {
	lod := float64(q.Level)
	if q.Detail == ByGradient {
		lod = t.gradient(q)
	}
	last := float64(len(t.Levels) - 1)
	lod += float64(t.Bias)
	lod = max(float64(t.MinLevel), min(lod, float64(t.MaxLevel)))
	if lod = max(0, min(lod, last)); lod != lod {
		lod = 0
	}
	if !t.MipLinear {
		return int(math.Floor(lod + 0.5)), 0
	}
	whole := math.Floor(lod)
	weight = int64(math.Floor((lod-whole)*one + 0.5))
	if level = int(whole); weight == one {
		level, weight = level+1, 0
	}
	return level, weight
}

// gradient returns the level at which a step is one texel: the logarithm of the longer
// step in texels of the first level.
func (t *Texture) gradient(q *Query) float64 {
	size := [3]float64{1, 1, 1}
	if t.Normalized || t.Cube {
		l := &t.Levels[0]
		size = [3]float64{float64(l.Width), float64(l.Height), float64(l.Depth)}
	}
	var dx, dy float64
	for i := range t.Dims {
		x, y := float64(q.DX[i])*size[i], float64(q.DY[i])*size[i]
		dx, dy = dx+x*x, dy+y*y
	}
	return math.Log2(max(dx, dy)) / 2
}

// face returns the coordinates and the layer of a fetch. In a cube map the direction
// determines a face and the normalized coordinates on it, and flat is true (programming
// guide, "Cubemap Textures").
func (t *Texture) face(q *Query) (at [3]float32, layer uint64, flat bool) {
	at = q.At
	if !q.Cube || !t.Cube {
		return at, uint64(min(q.Layer, t.Layers-1)), false
	}
	x, y, z := float64(at[0]), float64(at[1]), float64(at[2])
	ax, ay, az := math.Abs(x), math.Abs(y), math.Abs(z)
	var face uint64
	var m, s, v float64
	switch {
	case ax >= ay && ax >= az:
		if m, s, v = ax, -z, -y; x < 0 {
			face, s = 1, z
		}
	case ay >= az:
		if face, m, s, v = 2, ay, x, z; y < 0 {
			face, v = 3, -z
		}
	default:
		if face, m, s, v = 4, az, x, -y; z < 0 {
			face, s = 5, -x
		}
	}
	cube := uint64(min(q.Layer, t.Layers/6-1))
	return [3]float32{float32((s/m + 1) / 2), float32((v/m + 1) / 2)}, 6*cube + face, true
}

// axis has the texels of a level that a fetch reads along one axis.
type axis struct {
	first, count int64 // in texels
	weight       int64 // of the second texel
}

// axes computes the texels of a fetch along the axes of a level. On a face all
// coordinates are clamped.
func (t *Texture) axes(l *Level, q *Query, at [3]float32, flat, pair bool) (a [3]axis) {
	s := &t.Sampler
	if flat {
		s = &Sampler{Normalized: true, Address: [3]Address{Clamp, Clamp, Clamp}}
	}
	size := [3]uint32{l.Width, l.Height, l.Depth}
	for i := range t.Dims {
		if q.Whole {
			a[i] = axis{first: int64(q.Texel[i]) + int64(q.Offset[i]), count: 1}
			continue
		}
		p := s.position(i, at[i], q.Offset[i], size[i])
		if !pair {
			a[i] = axis{first: int64(math.Floor(p)), count: 1}
			continue
		}
		a[i].count = 2
		a[i].first, a[i].weight = between(p)
	}
	for i := t.Dims; i < 3; i++ {
		a[i].count = 1
	}
	return a
}

// level reads a level of an image: the nearest texel, or the weighted sum of those
// around the position.
func (t *Texture) level(mem []byte, level int, q *Query, at [3]float32, layer uint64, flat bool) value {
	l := &t.Levels[level]
	pair := t.Filtered && !q.Whole && !t.raw() && !t.Linear
	a := t.axes(l, q, at, flat, pair)
	if !pair {
		return t.texel(mem, l, [3]int64{a[0].first, a[1].first, a[2].first}, layer, q.Whole, flat)
	}
	var sum value
	for z := range a[2].count {
		for y := range a[1].count {
			for x := range a[0].count {
				w := a[0].share(x, a[1].share(y, a[2].share(z, one)))
				if w == 0 { // even an infinite texel is ignored
					continue
				}
				v := t.texel(mem, l, [3]int64{a[0].first + x, a[1].first + y, a[2].first + z}, layer, false, flat)
				for c := range sum.n {
					sum.n[c] += float64(w) / one * v.n[c]
				}
			}
		}
	}
	return sum
}

// share returns the part of a weight for the first or the second texel of an axis.
// Products of weights are also rounded to 8 fractional bits, and their sum is 1, as on
// a GPU.
func (a *axis) share(i, weight int64) int64 {
	second := (weight*a.weight + one/2) / one
	if i == 0 {
		return weight - second
	}
	return second
}

// texel reads a texel. Outside of the image the addressing mode applies; in linear
// memory, and if coordinates are whole texels, the value is 0.
func (t *Texture) texel(mem []byte, l *Level, i [3]int64, layer uint64, whole, flat bool) (v value) {
	s := t.Sampler
	if flat {
		s.Address = [3]Address{Clamp, Clamp, Clamp}
	}
	size := [3]uint32{l.Width, l.Height, l.Depth}
	var at [3]uint64
	for d := range t.Dims {
		var inside bool
		if at[d], inside = s.index(d, i[d], size[d]); (t.Linear || whole) && at[d] != uint64(i[d]) {
			return value{}
		} else if !inside {
			return t.border()
		}
	}
	b := mem[t.at(l, at[0], at[1], at[2], layer):][:t.Format.Bytes()]
	for c := range int(t.Format.Channels) {
		v.bits[c] = t.Format.channel(b, c)
		if v.n[c] = t.Format.number(v.bits[c]); t.SRGB && t.Format == (Format{Unsigned, 8, t.Format.Channels}) && c < 3 {
			v.n[c] = fromSRGB(v.n[c])
		}
	}
	return v
}

// border returns the border color. For integer formats its bits are used (driver API,
// cuTexObjectCreate).
func (t *Texture) border() (v value) {
	for c, f := range t.Border {
		v.n[c], v.bits[c] = float64(f), math.Float32bits(f)
	}
	return v
}

// Beyond reports whether a fetch from linear memory reads a texel that is not within the
// first n bytes of the image.
func (t *Texture) Beyond(n uint64, q *Query) bool {
	i := t.axes(&t.Levels[0], q, q.At, false, false)[0].first
	return i >= 0 && i < int64(t.Levels[0].Width) && (uint64(i)+1)*t.Format.Bytes() > n
}

// Gather returns one channel of the four texels that linear filtering in two dimensions
// would use, counter-clockwise from the lower left one (PTX ISA, "Texture Instructions:
// tld4").
func (t *Texture) Gather(mem []byte, q *Query, channel int) (four [4]uint32) {
	at, layer, flat := t.face(q)
	l := &t.Levels[0]
	a := t.axes(l, q, at, flat, true)
	for i, step := range [4][2]int64{{0, 1}, {1, 1}, {1, 0}, {0, 0}} {
		four[i] = t.result(t.texel(mem, l, [3]int64{a[0].first + step[0], a[1].first + step[1]}, layer, false, flat))[channel]
	}
	return four
}
