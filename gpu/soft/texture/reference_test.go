package texture_test

import (
	"math"
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/soft/texture"
)

// The reference follows the programming guide's appendix "Texture Fetching" and its
// text on addressing modes with rational numbers: coordinates are replaced, then
// texels chosen, and a texel outside is what the endless repetition of the image has
// there. It shares nothing with the package but the formats' decoding.

func rat(f float32) *big.Rat {
	r := new(big.Rat)
	r.SetFloat64(float64(f))
	return r
}

func floorOf(r *big.Rat) int64 {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	_ = m // Euclidean, and the denominator is positive: rounded down
	return q.Int64()
}

// replaced is the coordinate that the addressing mode makes of u, in texels of n.
func replaced(u float32, mode texture.Address, normalized bool, n int64) *big.Rat {
	x := rat(u)
	if !normalized {
		return x
	}
	whole := floorOf(x)
	fraction := new(big.Rat).Sub(x, new(big.Rat).SetInt64(whole))
	switch mode {
	case texture.Wrap:
		x = fraction
	case texture.Mirror:
		if x = fraction; whole%2 != 0 {
			x = new(big.Rat).Sub(big.NewRat(1, 1), fraction)
		}
	}
	return new(big.Rat).Mul(x, new(big.Rat).SetInt64(n))
}

// endless is the texel of the image that lies at i of its repetition; -1: the border.
func endless(i int64, mode texture.Address, normalized bool, n int64) int64 {
	if !normalized && mode != texture.Border {
		mode = texture.Clamp
	}
	switch {
	case mode == texture.Wrap:
		return ((i % n) + n) % n
	case mode == texture.Mirror:
		if i = ((i % (2 * n)) + 2*n) % (2 * n); i >= n {
			i = 2*n - 1 - i
		}
		return i
	case i >= 0 && i < n:
		return i
	case mode == texture.Border:
		return -1
	case i < 0:
		return 0
	}
	return n - 1
}

type plain struct {
	size       [3]int64
	dims       int
	texels     []float64 // x fastest
	row        int64     // texels from row to row
	border     float64
	mode       [3]texture.Address
	normalized bool
}

func (p *plain) texel(i [3]int64) float64 {
	var at [3]int64
	for d := range p.dims {
		if at[d] = endless(i[d], p.mode[d], p.normalized, p.size[d]); at[d] < 0 {
			return p.border
		}
	}
	return p.texels[(at[2]*p.size[1]+at[1])*p.row+at[0]]
}

func (p *plain) nearest(u [3]float32) float64 {
	var i [3]int64
	for d := range p.dims {
		i[d] = floorOf(replaced(u[d], p.mode[d], p.normalized, p.size[d]))
	}
	return p.texel(i)
}

// linear is the guide's sum, one axis after the other.
func (p *plain) linear(u [3]float32) float64 {
	var from [3]int64
	var weight [3]*big.Rat
	for d := range p.dims {
		x := replaced(u[d], p.mode[d], p.normalized, p.size[d])
		x.Sub(x, big.NewRat(1, 2))
		from[d] = floorOf(x)
		x.Sub(x, new(big.Rat).SetInt64(from[d]))
		x.Mul(x, big.NewRat(256, 1)).Add(x, big.NewRat(1, 2)) // 8 bits, rounded
		weight[d] = big.NewRat(floorOf(x), 256)
	}
	var sum func(d int, i [3]int64) *big.Rat
	sum = func(d int, i [3]int64) *big.Rat {
		if d < 0 {
			return new(big.Rat).SetFloat64(p.texel(i))
		}
		i[d] = from[d]
		low := sum(d-1, i)
		i[d]++
		high := sum(d-1, i)
		low.Mul(low, new(big.Rat).Sub(big.NewRat(1, 1), weight[d]))
		return low.Add(low, high.Mul(high, weight[d]))
	}
	f, _ := sum(p.dims-1, [3]int64{}).Float64()
	return f
}

func single(f float64) uint32 { return math.Float32bits(float32(f)) }
