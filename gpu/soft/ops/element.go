package ops

import "math"

// Element is the type of a matrix's elements (PTX ISA, "Warp Level Matrix
// Instructions": "Matrix Data-types"). Single-bit elements are stored as words of 32.
type Element struct {
	Name string
	Bits int
	// decode returns an element's value, which an f64 represents exactly; for single bits
	// the word as a number.
	decode func(bits uint64) float64
	// encode rounds a sum to the type; nil for types that are not those of a result.
	encode func(x float64) uint64
}

var elements = map[string]*Element{}

func init() {
	for _, e := range []Element{
		{"f16", 16, func(v uint64) float64 { return float64(f16(uint32(v))) }, func(x float64) uint64 { return uint64(toF16(x)) }},
		{"bf16", 16, func(v uint64) float64 { return float64(bf16(uint32(v))) }, nil},
		{"tf32", 32, func(v uint64) float64 { return float64(f32(uint32(v) &^ 0x1fff)) }, nil}, // the lower 13 bits are ignored
		{"e4m3", 8, decodeE4M3, nil},
		{"e5m2", 8, func(v uint64) float64 { return float64(f16(uint32(v) << 8)) }, nil},
		{"f32", 32, func(v uint64) float64 { return float64(f32(uint32(v))) }, func(x float64) uint64 { return uint64(b32(float32(x))) }},
		{"f64", 64, f64, math.Float64bits},
		{"s8", 8, func(v uint64) float64 { return float64(int8(v)) }, nil},
		{"u8", 8, func(v uint64) float64 { return float64(v) }, nil},
		{"s4", 4, func(v uint64) float64 { return float64(int8(v<<4) >> 4) }, nil},
		{"u4", 4, func(v uint64) float64 { return float64(v) }, nil},
		{"b1", 32, func(v uint64) float64 { return float64(v) }, nil},
		{"s32", 32, func(v uint64) float64 { return float64(int32(v)) }, func(x float64) uint64 { return uint64(uint32(int64(x))) }},
	} {
		elements[e.Name] = &e
	}
	sat := *elements["s32"]
	sat.encode = func(x float64) uint64 { return uint64(uint32(int32(min(max(x, math.MinInt32), math.MaxInt32)))) }
	elements["s32.satfinite"] = &sat
}

// ElementByName returns the element type that a qualifier without its dot names, or nil.
func ElementByName(name string) *Element { return elements[name] }

// Decode returns an element's value, which an f64 represents exactly.
func (e *Element) Decode(bits uint64) float64 { return e.decode(bits) }

// Encode rounds a sum to the type, which must be that of a result.
func (e *Element) Encode(x float64) uint64 { return e.encode(x) }

// Whole reports whether elements are integers or bits.
func (e *Element) Whole() bool { return e.Name[0] == 's' || e.Name[0] == 'u' || e.Name == "b1" }

// each returns how many elements a register of a fragment holds.
func (e *Element) each() int { return max(1, 32/e.Bits) }
