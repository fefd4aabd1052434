package oracle

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Image is the image that a texture or surface object of a launch refers to. Fetches
// follow the CUDA programming guide ("Texture Fetching", and its description of the
// addressing modes) with rational numbers: the coordinates are replaced first, then the
// texels are chosen, and a texel outside is that of the infinite repetition of the
// image.
type Image struct {
	Dims       int
	Size       [3]int64 // in texels; 1 for the axes beyond Dims
	Layers     int64    // at least 1
	Channels   int64
	Texels     []float32 // in the order channel, x, y, z, layer, where the channel varies fastest
	Border     [4]float32
	Mode       [3]Mode
	Normalized bool
	Linear     bool
}

// Mode is an addressing mode, numbered as CUaddress_mode.
type Mode int

// The addressing modes.
const (
	Wrap Mode = iota
	Clamp
	Mirror
	Border
)

// rational returns a coordinate as a rational number. A NaN is 0. An infinity is the
// largest finite number, or 0 where the coordinate repeats.
func rational(f float32, repeats bool) *big.Rat {
	switch x := float64(f); {
	case math.IsNaN(x) || math.IsInf(x, 0) && repeats:
		return new(big.Rat)
	case math.IsInf(x, 0):
		return new(big.Rat).SetFloat64(math.Copysign(math.MaxFloat64, x))
	default:
		return new(big.Rat).SetFloat64(x)
	}
}

// floor returns r rounded down, limited to ±2^62, which is outside of every image.
func floor(r *big.Rat) int64 {
	q, _ := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if most := big.NewInt(1 << 62); q.CmpAbs(most) > 0 {
		return most.Int64() * int64(q.Sign())
	}
	return q.Int64()
}

// replaced returns the coordinate, in texels, that the addressing mode makes of u.
func (im *Image) replaced(axis int, u float32, offset int32) *big.Rat {
	repeats := im.Normalized && (im.Mode[axis] == Wrap || im.Mode[axis] == Mirror)
	x, size := rational(u, repeats), new(big.Rat).SetInt64(im.Size[axis])
	if !im.Normalized {
		return x.Add(x, new(big.Rat).SetInt64(int64(offset)))
	}
	x.Add(x, new(big.Rat).Quo(new(big.Rat).SetInt64(int64(offset)), size))
	if repeats {
		period := big.NewInt(1)
		if im.Mode[axis] == Mirror { // one period is the image and its reflection
			period.SetInt64(2)
		}
		times, _ := new(big.Int).DivMod(x.Num(), new(big.Int).Mul(x.Denom(), period), new(big.Int))
		x.Sub(x, new(big.Rat).SetInt(times.Mul(times, period)))
	}
	return x.Mul(x, size)
}

// endless returns the texel of the image at index i of its infinite repetition, or -1
// for the border.
func (im *Image) endless(axis int, i int64) int64 {
	n, mode := im.Size[axis], im.Mode[axis]
	if !im.Normalized && mode != Border {
		mode = Clamp
	}
	switch {
	case mode == Wrap:
		return ((i % n) + n) % n
	case mode == Mirror:
		if i = ((i % (2 * n)) + 2*n) % (2 * n); i >= n {
			i = 2*n - 1 - i
		}
		return i
	case mode == Border && (i < 0 || i >= n):
		return -1
	}
	return max(0, min(i, n-1))
}

// Texel returns a channel of a texel of the image's infinite repetition. With whole,
// the coordinates were integers, which do not repeat: outside of the image the texel is
// 0.
func (im *Image) Texel(i [3]int64, layer int64, channel int, whole bool) float64 {
	if int64(channel) >= im.Channels {
		return 0
	}
	at := max(0, min(layer, im.Layers-1))
	for d := 2; d >= 0; d-- {
		x := int64(0)
		if d < im.Dims {
			x = im.endless(d, i[d])
			if whole && (i[d] < 0 || i[d] >= im.Size[d]) {
				return 0
			}
		}
		if x < 0 {
			return float64(im.Border[channel])
		}
		at = at*im.Size[d] + x
	}
	return float64(im.Texels[at*im.Channels+int64(channel)])
}

// Footprint returns the first of the texels around a point, and the weight of the
// second one on each axis, rounded to 8 fractional bits.
func (im *Image) Footprint(u [3]float32, offset [3]int32) (from [3]int64, weight [3]*big.Rat) {
	for d := range im.Dims {
		x := im.replaced(d, u[d], offset[d])
		x.Sub(x, big.NewRat(1, 2))
		from[d] = floor(x)
		x.Sub(x, new(big.Rat).SetInt64(from[d]))
		weight[d] = rounded8(x)
	}
	return from, weight
}

// Fetch returns a channel at a point.
func (im *Image) Fetch(u [3]float32, offset [3]int32, layer int64, channel int) float32 {
	if !im.Linear {
		var i [3]int64
		for d := range im.Dims {
			i[d] = floor(im.replaced(d, u[d], offset[d]))
		}
		return float32(im.Texel(i, layer, channel, false))
	}
	from, weight := im.Footprint(u, offset)
	var sum func(d int, i [3]int64, share *big.Rat) *big.Rat // one axis after the other
	sum = func(d int, i [3]int64, share *big.Rat) *big.Rat {
		if d < 0 {
			return share.Mul(share, new(big.Rat).SetFloat64(im.Texel(i, layer, channel, false)))
		}
		high := rounded8(new(big.Rat).Mul(share, weight[d]))
		low := new(big.Rat).Sub(share, high)
		i[d] = from[d]
		low = sum(d-1, i, low)
		i[d]++
		return low.Add(low, sum(d-1, i, high))
	}
	f, _ := sum(im.Dims-1, [3]int64{}, big.NewRat(1, 1)).Float32()
	return f
}

// rounded8 returns r rounded to 8 fractional bits, up at a tie.
func rounded8(r *big.Rat) *big.Rat {
	r.Mul(r, big.NewRat(256, 1)).Add(r, big.NewRat(1, 2))
	return big.NewRat(floor(r), 256)
}

// located decodes the operand [object, {coordinates}].
func (t *thread) located(in *ptx.Inst, mem *ptx.Operand) (im *Image, c []uint32, layer int64, err error) {
	if len(mem.List) != 2 {
		return nil, nil, 0, missing("%s with %d elements in its memory operand", in.Op, len(mem.List))
	}
	object := t.val(&mem.List[0], ptx.U64)
	if im = t.b.l.Images[object]; im == nil {
		return nil, nil, 0, fmt.Errorf("object %#x, want a texture or surface object", object)
	}
	for _, o := range elements(&mem.List[1]) {
		c = append(c, uint32(t.val(&o, ptx.F32)))
	}
	if in.Has("a1d") || in.Has("a2d") {
		layer, c = int64(c[0]), c[1:]
	}
	return im, c, layer, nil
}

// tex executes tex of the first mipmap level, and tld4.
func (t *thread) tex(in *ptx.Inst) error {
	im, c, layer, err := t.located(in, &in.Args[1])
	if err != nil {
		return err
	}
	var u [3]float32
	var i [3]int64
	var offset [3]int32
	for d := range im.Dims {
		u[d], i[d] = math.Float32frombits(c[d]), int64(int32(c[d]))
		if len(in.Args) > 2 {
			offset[d] = int32(t.val(&elements(&in.Args[2])[d], ptx.S32))
			i[d] += int64(offset[d])
		}
	}
	out := elements(&in.Args[0])
	for k := range out {
		var v float32
		switch whole := in.Has("s32"); {
		case in.Op == "tld4":
			from, _ := im.Footprint(u, offset)
			step := [4][2]int64{{0, 1}, {1, 1}, {1, 0}, {0, 0}}[k] // counter-clockwise from the lower left
			from[0], from[1] = from[0]+step[0], from[1]+step[1]
			v = float32(im.Texel(from, layer, map[string]int{"r": 0, "g": 1, "b": 2, "a": 3}[in.Mods[0]], false))
		case whole:
			v = float32(im.Texel(i, layer, k, true))
		default:
			v = im.Fetch(u, offset, layer, k)
		}
		t.set(&out[k], uint64(math.Float32bits(v)))
	}
	return nil
}

// surface executes suld.b and sust.b of whole channels of 32 bits.
func (t *thread) surface(in *ptx.Inst) error {
	place, values := &in.Args[1], elements(&in.Args[0])
	if in.Op == "sust" {
		place, values = &in.Args[0], elements(&in.Args[1])
	}
	im, c, layer, err := t.located(in, place)
	if err != nil {
		return err
	}
	at, most := []int64{layer, 0, 0, int64(int32(c[0]))}, []int64{im.Layers, im.Size[2], im.Size[1], im.Size[0] * im.Channels * 4}
	for d := 1; d < im.Dims; d++ {
		at[3-d] = int64(int32(c[d]))
	}
	n := int64(4 * len(values))
	if at[3]%n != 0 {
		return errors.New("misaligned texel of a surface")
	}
	most[3] = most[3] / n * n
	index, there := int64(0), true
	for d, x := range at {
		last := most[d] - 1
		if d == 3 {
			last = most[d] - n
		}
		if x < 0 || x > last {
			if in.Has("trap") {
				return errors.New("texel outside of the surface")
			}
			there = there && !in.Has("zero")
			x = max(0, min(x, last))
		}
		if d == 3 {
			index = index*im.Size[0]*im.Channels + x/4
		} else {
			index = index*most[d] + x
		}
	}
	for k := range values {
		switch {
		case in.Op == "sust" && there:
			im.Texels[index+int64(k)] = math.Float32frombits(uint32(t.val(&values[k], ptx.B32)))
		case in.Op == "suld" && there:
			t.set(&values[k], uint64(math.Float32bits(im.Texels[index+int64(k)])))
		case in.Op == "suld":
			t.set(&values[k], 0)
		}
	}
	return nil
}
