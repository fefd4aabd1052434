package ops

import (
	"math"
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Conversion is a cvt for which ops.txt has no loop (PTX ISA, "Data Movement and
// Conversion Instructions": cvt).
type Conversion struct {
	To, From  ptx.Type
	Mode      Rounding
	ToInteger bool // .rni and similar
	FTZ, Sat  bool
}

// String returns the conversion's types and modifiers.
func (v Conversion) String() string {
	s := map[Rounding]string{Nearest: "rn", TowardZero: "rz", TowardMinus: "rm", TowardPlus: "rp"}[v.Mode]
	for _, m := range []struct {
		on   bool
		name string
	}{{v.ToInteger, "i"}, {v.FTZ, ".ftz"}, {v.Sat, ".sat"}} {
		if m.on {
			s += m.name
		}
	}
	return s + "." + v.To.String() + "." + v.From.String()
}

// FindConversion returns the conversion of a cvt with these modifiers. PTX has no
// conversion of a floating-point number to an integer without a rounding to integers;
// the caller must check ToInteger.
func FindConversion(mods []string) (v Conversion, ok bool) {
	v.Mode = Nearest
	types := 0
	for _, m := range mods {
		if t, ok := ptx.TypeByName(m); ok {
			if types++; types == 1 {
				v.To = t
			} else {
				v.From = t
			}
			continue
		}
		if !v.modify(m) {
			return v, false
		}
	}
	return v, types == 2 && convertible(v.To) && convertible(v.From)
}

// modify applies a modifier that is not a type, and reports whether cvt has it.
func (v *Conversion) modify(m string) bool {
	switch m {
	case "rn":
	case "rz":
		v.Mode = TowardZero
	case "rm":
		v.Mode = TowardMinus
	case "rp":
		v.Mode = TowardPlus
	case "rni":
		v.ToInteger = true
	case "rzi":
		v.Mode, v.ToInteger = TowardZero, true
	case "rmi":
		v.Mode, v.ToInteger = TowardMinus, true
	case "rpi":
		v.Mode, v.ToInteger = TowardPlus, true
	case "ftz":
		v.FTZ = true
	case "sat":
		v.Sat = true
	default:
		return false
	}
	return true
}

func convertible(t ptx.Type) bool {
	switch t {
	case ptx.F16x2, ptx.BF16x2, ptx.TF32, ptx.E4M3x2, ptx.E5M2x2, ptx.U16x2, ptx.S16x2, ptx.Pred, ptx.B128, ptx.NoType, ptx.B8, ptx.B16, ptx.B32, ptx.B64:
		return false
	}
	return true
}

// Convert returns the bits of the result for those of the source, each in the low bits
// of a word.
func (v Conversion) Convert(a uint64) uint64 {
	switch {
	case v.From.Float() && v.To.Float():
		return v.floatToFloat(a)
	case v.From.Float():
		return v.floatToInt(a)
	case v.To.Float():
		return v.intToFloat(a)
	}
	return v.intToInt(a)
}

// extended returns an integer of type t extended to 64 bits.
func extended(a uint64, t ptx.Type) uint64 {
	n := 64 - 8*t.Size()
	if t.Signed() {
		return uint64(int64(a<<n) >> n)
	}
	return a << n >> n
}

func limits(t ptx.Type) (lo int64, hi uint64) {
	n := 8 * t.Size()
	if t.Signed() {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, 1<<n - 1
}

func (v Conversion) intToInt(a uint64) uint64 {
	x := extended(a, v.From)
	if v.Sat {
		lo, hi := limits(v.To)
		switch negative := v.From.Signed() && int64(x) < 0; {
		case negative && int64(x) < lo:
			x = uint64(lo)
		case !negative && x > hi:
			x = hi
		}
	}
	return extended(x, v.To)
}

func (v Conversion) number(a uint64) float64 {
	switch v.From {
	case ptx.F16:
		return float64(f16(uint32(a)))
	case ptx.BF16:
		return float64(bf16(uint32(a)))
	case ptx.F32:
		x := uint32(a)
		if v.FTZ {
			x = flush(x)
		}
		return float64(f32(x))
	}
	return f64(a)
}

func (v Conversion) round(x float64) float64 {
	switch v.Mode {
	case TowardZero:
		return math.Trunc(x)
	case TowardMinus:
		return math.Floor(x)
	case TowardPlus:
		return math.Ceil(x)
	}
	return math.RoundToEven(x)
}

// floatToInt clamps. For a NaN it returns the value that the PTX ISA specifies for the
// pair of types.
func (v Conversion) floatToInt(a uint64) uint64 {
	x := v.number(a)
	if x != x {
		if v.From != ptx.F64 && v.To.Size() != 8 {
			return 0
		}
		return extended(1<<(8*v.To.Size()-1), v.To)
	}
	x = v.round(x)
	lo, hi := limits(v.To)
	if x <= float64(lo) {
		return extended(uint64(lo), v.To)
	}
	if x >= float64(hi) {
		return extended(hi, v.To)
	}
	if v.To.Signed() {
		return extended(uint64(int64(x)), v.To)
	}
	return uint64(x)
}

func (v Conversion) intToFloat(a uint64) uint64 {
	x := extended(a, v.From)
	b := new(big.Float).SetPrec(64)
	if v.From.Signed() {
		b.SetInt64(int64(x))
	} else {
		b.SetUint64(x)
	}
	return v.finish(b)
}

func (v Conversion) floatToFloat(a uint64) uint64 {
	x := v.number(a)
	if x != x && !v.Sat && (v.From == ptx.F64 || v.To == ptx.F64) {
		return v.carried(a)
	}
	if v.ToInteger {
		x = v.round(x)
	}
	if x-x != 0 || x == 0 {
		return v.pack(x)
	}
	return v.finish(new(big.Float).SetPrec(64).SetFloat64(x))
}

// carried converts a NaN from or to f64. Its sign and payload are kept, by way of f64.
func (v Conversion) carried(a uint64) uint64 {
	wide := a | quiet64
	switch v.From {
	case ptx.F16:
		wide = a>>15<<63 | 0x7ff<<52 | quiet64 | a&0x3ff<<42
	case ptx.BF16:
		wide = wide64(uint32(a) << 16)
	case ptx.F32:
		wide = wide64(uint32(a))
	}
	switch v.To {
	case ptx.F16:
		return wide>>63<<15 | 0x7c00 | wide>>42&0x3ff
	case ptx.BF16:
		return uint64(narrow32(wide) >> 16)
	case ptx.F32:
		return uint64(narrow32(wide))
	}
	return wide
}

// finish rounds an exact number to the target type.
func (v Conversion) finish(b *big.Float) uint64 {
	switch v.To {
	case ptx.F32:
		f, acc := b.Float32()
		if adjust(acc, v.Mode, b.Signbit()) {
			f = math.Nextafter32(f, towards32(acc))
		}
		return v.pack(float64(f))
	case ptx.F64:
		f, acc := b.Float64()
		if adjust(acc, v.Mode, b.Signbit()) {
			f = math.Nextafter(f, float64(towards32(acc)))
		}
		return v.pack(f)
	}
	// A half: an f64 cannot hold all 64-bit integers, but those that it rounds wrongly are
	// far above the range of a half; bfloat needs rounding to odd.
	f, acc := b.Float64()
	if bits := math.Float64bits(f); acc != big.Exact && bits&1 == 0 {
		if (acc == big.Below) == (f > 0) {
			f = math.Float64frombits(bits + 1)
		} else {
			f = math.Float64frombits(bits - 1)
		}
	}
	return v.pack(f)
}

// pack encodes a number that the target type can represent, or rounds it to a half.
func (v Conversion) pack(x float64) uint64 {
	if v.Sat {
		if !(x > 0) {
			x = 0
		}
		x = min(x, 1)
	}
	switch v.To {
	case ptx.F16:
		return uint64(narrow(x, 10, 5, v.Mode))
	case ptx.BF16:
		return uint64(narrow(x, 7, 8, v.Mode))
	case ptx.F32:
		r := b32(float32(x))
		if v.FTZ {
			r = flush(r)
		}
		return uint64(r)
	}
	return b64(x)
}
