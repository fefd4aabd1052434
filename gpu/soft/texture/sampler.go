package texture

import "math"

// Address is the addressing mode of a coordinate (programming guide, "Texture Memory").
// The numbers are those of CUaddress_mode.
type Address uint8

// The addressing modes.
const (
	Wrap Address = iota
	Clamp
	Mirror
	Border
)

// Sampler has the sampling parameters of a texture.
type Sampler struct {
	Address    [3]Address
	Filtered   bool // the weighted sum of the texels around a position
	MipLinear  bool // linear between levels
	Normalized bool // coordinates are from 0 to 1
	Integers   bool // integer channels are not converted
	SRGB       bool // of 8-bit colors; alpha is linear
	Border     [4]float32
	Bias       float32 // added to the level
	MinLevel   float32
	MaxLevel   float32
}

// position returns the position of a coordinate on an axis of n texels, in texels. Wrap
// and Mirror require normalized coordinates; others are clamped (programming guide, the
// addressing modes). A mirrored position is in the image or in the reflection after it:
// a GPU reflects indices, as tld4 shows. A NaN is the coordinate 0.
func (s *Sampler) position(axis int, coordinate float32, offset int32, n uint32) float64 {
	u, size, shift := float64(coordinate), float64(n), 0.0
	if offset != 0 { // a division takes as long as the rest
		shift = float64(offset) / size
	}
	if math.IsNaN(u) {
		u = 0
	}
	if !s.Normalized {
		return bounded(u+float64(offset), size)
	}
	if mode := s.Address[axis]; mode == Wrap || mode == Mirror {
		if u -= 2 * math.Floor(u/2); u != u { // both repeat after 2; an infinite coordinate does not repeat
			u = 0
		}
		u += shift
		period := 1.0
		if mode == Mirror {
			period = 2
		}
		return (u - period*math.Floor(u/period)) * size
	}
	u += shift
	return bounded(u*size, size)
}

// bounded moves a position near the image. Further away only its fraction matters, for
// weights, and an infinite one has none.
func bounded(p, size float64) float64 {
	if p >= -2 && p <= size+2 {
		return p
	}
	fraction := p - math.Floor(p)
	if fraction != fraction {
		fraction = 0
	}
	if p < 0 {
		return fraction - 2
	}
	return size + 2 + fraction
}

// index returns the texel for an index outside of the n texels, or false for the
// border.
func (s *Sampler) index(axis int, i int64, n uint32) (uint64, bool) {
	if i >= 0 && i < int64(n) {
		return uint64(i), true
	}
	switch mode := s.Address[axis]; {
	case mode == Border:
		return 0, false
	case mode == Wrap && s.Normalized:
		if i %= int64(n); i < 0 {
			i += int64(n)
		}
		return uint64(i), true
	case mode == Mirror && s.Normalized:
		if i %= 2 * int64(n); i < 0 {
			i += 2 * int64(n)
		}
		return uint64(min(i, 2*int64(n)-1-i)), true
	}
	return uint64(max(0, min(i, int64(n)-1))), true
}

// one is a weight of 1: weights have 8 fractional bits, and can be 1 (programming
// guide, "Linear Filtering").
const one = 256

// between returns the first of the two texels around a position and the weight of the
// second.
func between(p float64) (first int64, weight int64) {
	p -= 0.5
	whole := math.Floor(p)
	return int64(whole), int64(math.Floor((p-whole)*one + 0.5))
}
