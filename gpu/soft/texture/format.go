package texture

import (
	"encoding/binary"
	"math"
)

// Kind is the type of a texel's channels.
type Kind uint8

// The kinds.
const (
	Unsigned Kind = iota
	Signed
	Float
)

// Format is the format of a texel: 1, 2 or 4 channels of 8, 16 or 32 bits; a Float has
// 16 or 32 bits.
type Format struct {
	Kind     Kind
	Bits     uint8
	Channels uint8
}

// Valid reports whether the format exists.
func (f Format) Valid() bool {
	switch f.Channels {
	case 1, 2, 4:
	default:
		return false
	}
	switch f.Bits {
	case 8:
		return f.Kind < Float
	case 16, 32:
		return f.Kind <= Float
	}
	return false
}

// Bytes returns the size of a texel.
func (f Format) Bytes() uint64 { return uint64(f.Bits) / 8 * uint64(f.Channels) }

// channel returns the bits of one channel, extended to 32 bits.
func (f Format) channel(b []byte, c int) uint32 {
	switch f.Bits {
	case 8:
		if f.Kind == Signed {
			return uint32(int32(int8(b[c])))
		}
		return uint32(b[c])
	case 16:
		v := binary.LittleEndian.Uint16(b[2*c:])
		if f.Kind == Signed {
			return uint32(int32(int16(v)))
		}
		return uint32(v)
	}
	return binary.LittleEndian.Uint32(b[4*c:])
}

// number returns a channel as a floating-point number: a Float itself, an integer as a
// fraction of the largest (programming guide, "Texture Memory": the read mode
// cudaReadModeNormalizedFloat).
func (f Format) number(v uint32) float64 {
	switch f.Kind {
	case Unsigned:
		return float64(v) / float64(uint64(1)<<f.Bits-1)
	case Signed:
		return max(-1, float64(int32(v))/float64(uint64(1)<<(f.Bits-1)-1))
	}
	if f.Bits == 16 {
		return fromHalf(uint16(v))
	}
	return float64(math.Float32frombits(v))
}

// fromHalf returns the value of an IEEE binary16.
func fromHalf(h uint16) float64 {
	sign, exp, frac := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return sign * math.Inf(1)
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// toHalf rounds to the nearest IEEE binary16, to even at a tie.
func toHalf(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 48 & 0x8000)
	switch v = math.Abs(v); {
	case math.IsNaN(v):
		return 0x7fff
	case v >= 65520: // rounds beyond the largest
		return sign | 0x7c00
	case v < 0x1p-14:
		return sign | uint16(math.RoundToEven(math.Ldexp(v, 24)))
	}
	frac, exp := math.Frexp(v) // [0.5, 1)
	return sign | (uint16(exp+14)<<10 + uint16(math.RoundToEven(math.Ldexp(frac, 11))) - 1024)
}

// Half converts the bits of an IEEE binary32 to those of the nearest binary16.
func Half(single uint32) uint16 { return toHalf(float64(math.Float32frombits(single))) }

// fromSRGB returns the linear intensity of an sRGB value (IEC 61966-2-1).
func fromSRGB(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// Encode stores a texel of 32-bit channels as sust.p does (PTX ISA, "Surface
// Instructions: sust"): each channel is converted from the 32-bit type of the format's
// kind, and clamped to its range. b must have the size of a texel.
func (f Format) Encode(b []byte, v [4]uint32) {
	for c := range int(f.Channels) {
		n := v[c]
		switch {
		case f.Kind == Float && f.Bits == 16:
			n = uint32(Half(n))
		case f.Kind == Unsigned && f.Bits < 32:
			n = min(n, 1<<f.Bits-1)
		case f.Kind == Signed && f.Bits < 32:
			most := int32(1)<<(f.Bits-1) - 1
			n = uint32(max(-most-1, min(int32(n), most)))
		}
		switch f.Bits {
		case 8:
			b[c] = byte(n)
		case 16:
			binary.LittleEndian.PutUint16(b[2*c:], uint16(n))
		default:
			binary.LittleEndian.PutUint32(b[4*c:], n)
		}
	}
}
