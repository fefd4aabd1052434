package soft

import (
	"math"
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// conversion is a cvt that ops.txt has no loop for (PTX ISA, "Data Movement and
// Conversion Instructions": cvt).
type conversion struct {
	to, from  ptx.Type
	mode      rounding
	toInteger bool // .rni and the like
	ftz, sat  bool
}

// convert gives the target's bits for the source's, each in the low bits of a word.
func (v conversion) convert(a uint64) uint64 {
	switch {
	case v.from.Float() && v.to.Float():
		return v.floatToFloat(a)
	case v.from.Float():
		return v.floatToInt(a)
	case v.to.Float():
		return v.intToFloat(a)
	}
	return v.intToInt(a)
}

// extended is an integer of type t as 64 bits.
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

func (v conversion) intToInt(a uint64) uint64 {
	x := extended(a, v.from)
	if v.sat {
		lo, hi := limits(v.to)
		switch negative := v.from.Signed() && int64(x) < 0; {
		case negative && int64(x) < lo:
			x = uint64(lo)
		case !negative && x > hi:
			x = hi
		}
	}
	return extended(x, v.to)
}

func (v conversion) number(a uint64) float64 {
	switch v.from {
	case ptx.F16:
		return float64(f16(uint32(a)))
	case ptx.BF16:
		return float64(bf16(uint32(a)))
	case ptx.F32:
		x := uint32(a)
		if v.ftz {
			x = flush(x)
		}
		return float64(f32(x))
	}
	return f64(a)
}

func (v conversion) round(x float64) float64 {
	switch v.mode {
	case towardZero:
		return math.Trunc(x)
	case towardMinus:
		return math.Floor(x)
	case towardPlus:
		return math.Ceil(x)
	}
	return math.RoundToEven(x)
}

// floatToInt clamps; NaN gives what the PTX ISA says for the pair of types.
func (v conversion) floatToInt(a uint64) uint64 {
	x := v.number(a)
	if x != x {
		if v.from != ptx.F64 && v.to.Size() != 8 {
			return 0
		}
		return extended(1<<(8*v.to.Size()-1), v.to)
	}
	x = v.round(x)
	lo, hi := limits(v.to)
	if x <= float64(lo) {
		return extended(uint64(lo), v.to)
	}
	if x >= float64(hi) {
		return extended(hi, v.to)
	}
	if v.to.Signed() {
		return extended(uint64(int64(x)), v.to)
	}
	return uint64(x)
}

func (v conversion) intToFloat(a uint64) uint64 {
	x := extended(a, v.from)
	b := new(big.Float).SetPrec(64)
	if v.from.Signed() {
		b.SetInt64(int64(x))
	} else {
		b.SetUint64(x)
	}
	return v.finish(b)
}

func (v conversion) floatToFloat(a uint64) uint64 {
	x := v.number(a)
	if v.toInteger {
		x = v.round(x)
	}
	if x-x != 0 || x == 0 {
		return v.pack(x)
	}
	return v.finish(new(big.Float).SetPrec(64).SetFloat64(x))
}

// finish rounds an exact number to the target.
func (v conversion) finish(b *big.Float) uint64 {
	switch v.to {
	case ptx.F32:
		f, acc := b.Float32()
		if adjust(acc, v.mode, b.Signbit()) {
			f = math.Nextafter32(f, towards32(acc))
		}
		return v.pack(float64(f))
	case ptx.F64:
		f, acc := b.Float64()
		if adjust(acc, v.mode, b.Signbit()) {
			f = math.Nextafter(f, float64(towards32(acc)))
		}
		return v.pack(f)
	}
	// A half: 64-bit integers do not fit an f64, but all that f64 could
	// round wrongly is far above a half's range; bfloat needs round to odd.
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

// pack encodes a number that the target holds, or rounds it to a half.
func (v conversion) pack(x float64) uint64 {
	if v.sat {
		if !(x > 0) {
			x = 0
		}
		x = min(x, 1)
	}
	switch v.to {
	case ptx.F16:
		return uint64(narrow(x, 10, 5, v.mode))
	case ptx.BF16:
		return uint64(narrow(x, 7, 8, v.mode))
	case ptx.F32:
		r := b32(float32(x))
		if v.ftz {
			r = flush(r)
		}
		return uint64(r)
	}
	return b64(x)
}
