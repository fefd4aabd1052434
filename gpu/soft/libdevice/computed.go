package libdevice

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// computed returns the functions of one lane's values that are not instructions.
func computed() map[string]any {
	all := map[string]any{
		"norm3df":  func(x, y, z float32) float32 { return float32(norm3d(float64(x), float64(y), float64(z))) },
		"rnorm3df": func(x, y, z float32) float32 { return float32(rnorm3d(float64(x), float64(y), float64(z))) },
		"norm4df": func(x, y, z, t float32) float32 {
			return float32(norm4d(float64(x), float64(y), float64(z), float64(t)))
		},
		"rnorm4df": func(x, y, z, t float32) float32 {
			return float32(rnorm4d(float64(x), float64(y), float64(z), float64(t)))
		},
		"norm3d": norm3d, "rnorm3d": rnorm3d, "norm4d": norm4d, "rnorm4d": rnorm4d,
		"jn": jn, "yn": yn,
		"jnf":    func(n int32, x float32) float32 { return float32(jn(n, float64(x))) },
		"ynf":    func(n int32, x float32) float32 { return float32(yn(n, float64(x))) },
		"powi":   powi,
		"powif":  func(x float32, n int32) float32 { return float32(math.Pow(float64(x), float64(n))) },
		"ldexp":  ldexp,
		"ldexpf": ldexpf,
		"scalbn": ldexp, "scalbnf": ldexpf,
		"ilogb":    ilogb,
		"ilogbf":   func(x float32) int32 { return ilogb(float64(x)) },
		"copysign": math.Copysign, "copysignf": func(x, y float32) float32 { return float32(math.Copysign(float64(x), float64(y))) },
		"nan":  func(uint64) float64 { return math.NaN() }, // the text is ignored
		"nanf": func(uint64) float32 { return float32(math.NaN()) },
		"fdim": fdim, "fdimf": fdimf,
		"nextafter": math.Nextafter, "nextafterf": math.Nextafter32,
		"llround": llround, "llroundf": func(x float32) int64 { return llround(float64(x)) },
		"llrint": llrint, "llrintf": func(x float32) int64 { return llrint(float64(x)) },
		"fast_powf": func(x, y float32) float32 { return float32(ops.Exp2(float64(y) * ops.Log2(float64(x)))) },
		"fast_tanf": single(tan),
		"frsqrt_rn": single(func(x float64) float64 { return 1 / math.Sqrt(x) }),
	}
	for name, f := range oneArgument {
		all[name] = f
		all[name+"f"] = single(f)
	}
	for name, f := range twoArguments {
		all[name] = f
		all[name+"f"] = single2(f)
	}
	for name, f := range fastSingles {
		all[name+"f"] = single(f)
	}
	for name, f := range byTwo {
		all[name+"f"], all["fast_"+name+"f"] = single(f), single(f)
	}
	predicates(all)
	integers(all)
	return all
}

// oneArgument has functions of one double, whose float variants round their result.
var oneArgument = map[string]func(float64) float64{
	"exp": exp, "exp2": exp2, "exp10": exp10, "expm1": expm1, "log": log, "log2": log2, "log10": log10, "log1p": log1p,
	"sin": sin, "cos": cos, "tan": tan, "sinpi": sinpi, "cospi": cospi, "asin": asin, "acos": acos, "atan": atan,
	"sinh": sinh, "cosh": cosh, "tanh": tanh, "asinh": asinh, "acosh": acosh, "atanh": atanh,
	"rsqrt": rsqrt, "cbrt": cbrt, "rcbrt": rcbrt,
	"erf": math.Erf, "erfc": erfc, "erfcx": erfcx, "erfinv": erfinv, "erfcinv": erfcinv, "normcdf": normcdf, "normcdfinv": normcdfinv,
	"tgamma": tgamma, "lgamma": lgamma,
	"j0": j0, "j1": j1, "y0": y0, "y1": y1, "cyl_bessel_i0": besselI0, "cyl_bessel_i1": besselI1,
	"round": math.Round, "logb": logb,
}

// fastSingles replaces functions for float, where Go's have much more precision than
// necessary.
var fastSingles = map[string]func(float64) float64{
	"expm1": math.Expm1, "log1p": math.Log1p,
	"atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": ops.Tanh,
	"asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh, "erfc": math.Erfc,
	"j0": math.J0, "j1": firstBessel, "y0": math.Y0, "y1": math.Y1,
	"rcbrt": func(x float64) float64 { return 1 / math.Cbrt(x) },
}

// byTwo has functions for float that are computed from powers and logarithms of two.
var byTwo = map[string]func(float64) float64{
	"exp":   func(x float64) float64 { return ops.Exp2(x * math.Log2E) },
	"exp10": func(x float64) float64 { return ops.Exp2(x * ops.Log2Ten) },
	"log":   func(x float64) float64 { return ops.Log2(x) * math.Ln2 },
	"log10": func(x float64) float64 { return ops.Log2(x) * (1 / ops.Log2Ten) },
}

// firstBessel returns Go's J1, with the sign of a zero, which Go loses.
func firstBessel(x float64) float64 {
	if x == 0 {
		return x
	}
	return math.J1(x)
}

var twoArguments = map[string]func(x, y float64) float64{
	"pow": pow, "atan2": atan2, "hypot": hypot, "rhypot": rhypot, "fmod": math.Mod, "remainder": math.Remainder,
}

func predicates(all map[string]any) {
	for name, f := range map[string]func(float64) bool{
		"isnan":   func(x float64) bool { return x != x },
		"isinf":   func(x float64) bool { return math.IsInf(x, 0) },
		"signbit": math.Signbit,
		"finite":  func(x float64) bool { return x-x == 0 },
	} {
		d := name + "d"
		if name == "finite" {
			d = "isfinited"
		}
		all[d] = func(x float64) int32 { return truth(f(x)) }
		all[name+"f"] = func(x float32) int32 { return truth(f(float64(x))) }
	}
}
