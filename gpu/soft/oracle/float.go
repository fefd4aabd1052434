package oracle

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

func modeOf(in *ptx.Inst) string {
	for _, m := range in.Mods {
		switch m {
		case "rz", "rm", "rp", "rna":
			return m
		}
	}
	return "rn"
}

// float evaluates one floating-point instruction on one value of each source.
func float(in *ptx.Inst, t ptx.Type, v []uint64) (uint64, error) {
	f, mode := formatOf(t), modeOf(in)
	ftz := in.Has("ftz") && t != ptx.F64
	x := make([]number, len(v))
	for i := range v {
		if x[i] = decode(v[i], f); ftz {
			if x[i] = x[i].flushed(f); x[i].isZero() {
				v[i] &= f.signBit()
			}
		}
	}
	if in.Op == "copysign" { // copies the sign of a NaN too
		return v[0]&f.signBit() | v[1]&^f.signBit(), nil
	}
	if in.Has("approx") && t == ptx.F64 && in.Has("ftz") {
		return coarse(in, v[0])
	}
	if d, ok := handedOn(in, v, x); t == ptx.F64 && ok {
		return d, nil
	}
	var r number
	switch in.Op {
	case "abs":
		r = x[0]
		r.neg = false
	case "neg":
		r = x[0].negated()
	case "add":
		r = add(x[0], x[1], mode)
	case "sub":
		r = add(x[0], x[1].negated(), mode)
	case "mul":
		r = mul(x[0], x[1])
	case "fma", "mad":
		r = add(mul(x[0], x[1]), x[2], mode)
	case "div":
		r = div(x[0], x[1])
	case "rcp":
		r = div(small(1), x[0])
	case "sqrt":
		r = sqrt(x[0])
	case "rsqrt":
		r = div(small(1), decode(sqrt(x[0]).encode(f, mode), f))
	case "min", "max":
		r = minimum(in, x[0], x[1])
	default:
		a, ok := approximate(in.Op, math.Float64frombits(x[0].encode(f64format, "rn")))
		if !ok {
			return 0, missing("%s of type .%s", in.Op, t)
		}
		r = decode(math.Float64bits(a), f64format)
	}
	if in.Has("relu") && (r.nan || r.neg) {
		if !r.nan {
			r = zeroOf(false)
		}
	}
	d := r.encode(f, mode)
	if in.Has("sat") {
		d = saturated(decode(d, f)).encode(f, mode)
	}
	if ftz {
		d = decode(d, f).flushed(f).encode(f, mode)
	}
	return d, nil
}

// handedOn returns the NaN of a source, made quiet, that is the result of an f64
// instruction. If several sources are NaNs it is that of the second source, then the
// third, then the first; of a division that of the first. min and max return a NaN only
// if both sources are NaNs.
func handedOn(in *ptx.Inst, v []uint64, x []number) (uint64, bool) {
	if number := !x[0].nan || len(x) > 1 && !x[1].nan; number && (in.Op == "min" || in.Op == "max") {
		return 0, false
	}
	for i := 1; i <= len(x); i++ {
		at := i % len(x)
		if in.Op == "div" {
			at = i - 1
		}
		if x[at].nan {
			return v[at] | 1<<51, true
		}
	}
	return 0, false
}

// coarse evaluates rcp and rsqrt with .approx.ftz.f64, which read only the upper half
// of the source: a NaN whose payload is in the lower half is treated as an infinity, as
// on a GPU.
func coarse(in *ptx.Inst, v uint64) (uint64, error) {
	x := decode(v>>32<<32, f64format).flushed(f64format)
	if in.Op == "rsqrt" {
		x = decode(sqrt(x).encode(f64format, "rn"), f64format)
	}
	r := div(small(1), x)
	if r.nan {
		return 0x7fffffff << 32, nil
	}
	d := decode(r.encode(f64format, "rn"), f64format).flushed(f64format).encode(f64format, "rn")
	return d >> 32 << 32, nil
}

func saturated(n number) number {
	if n.nan || n.sign() <= 0 {
		return zeroOf(false)
	}
	if one := small(1); compare(n, one, false) > 0 {
		return one
	}
	return n
}

// minimum evaluates min and max. With .xorsign.abs it is that of the absolute values, and
// negative if one of the sources is.
func minimum(in *ptx.Inst, a, b number) number {
	if !in.Has("xorsign") {
		return pickOne(a, b, in.Op == "min", in.Has("NaN"))
	}
	negative := a.neg != b.neg
	a.neg, b.neg = false, false
	r := pickOne(a, b, in.Op == "min", in.Has("NaN"))
	r.neg = negative && !r.nan
	return r
}

func pickOne(a, b number, smaller, propagate bool) number {
	switch {
	case a.nan && b.nan || propagate && (a.nan || b.nan):
		return nan()
	case a.nan:
		return b
	case b.nan:
		return a
	}
	if c := compare(a, b, true); smaller == (c < 0) {
		return a
	}
	return b
}

// approximate evaluates the functions for which PTX only bounds the error. It returns
// false for another function.
func approximate(op string, x float64) (float64, bool) {
	if huge := math.Abs(x) >= 1<<51; huge && (op == "sin" || op == "cos") { // treated as 0, where PTX specifies no error
		x *= 0
	}
	switch op {
	case "sin":
		return math.Sin(x), true
	case "cos":
		return math.Cos(x), true
	case "ex2":
		return math.Exp2(x), true
	case "lg2":
		return math.Log2(x), true
	case "tanh":
		return math.Tanh(x), true
	}
	return 0, false
}

func testp(in *ptx.Inst, v uint64, f format) uint64 {
	n := decode(v, f)
	finite := !n.nan && !n.inf
	tiny := finite && n.below2(1-f.bias())
	yes := false
	switch in.Mods[0] {
	case "finite":
		yes = finite
	case "infinite":
		yes = n.inf
	case "number":
		yes = !n.nan
	case "notanumber":
		yes = n.nan
	case "normal":
		yes = finite && (!tiny || n.isZero())
	case "subnormal":
		yes = tiny && !n.isZero()
	}
	return boolean(yes)
}

func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// holds reports whether the comparison of setp and set is true.
func holds(in *ptx.Inst, t ptx.Type, x, y uint64) bool {
	op := in.Mods[0]
	if _, ok := ptx.TypeByName(op); ok { // the form that GCC writes: the type of the result comes first
		op = in.Mods[1]
	}
	var c int
	unordered := false
	if t.Float() {
		f := formatOf(t)
		a, b := decode(x, f), decode(y, f)
		if in.Has("ftz") && t != ptx.F64 {
			a, b = a.flushed(f), b.flushed(f)
		}
		if unordered = a.nan || b.nan; !unordered {
			c = compare(a, b, false)
		}
		switch op {
		case "num":
			return !unordered
		case "nan":
			return unordered
		}
		if len(op) == 3 { // equ, neu, ltu …
			if unordered {
				return true
			}
			op = op[:2]
		}
	} else {
		c = integer(x, t).Cmp(integer(y, t))
	}
	if unordered {
		return false
	}
	switch op {
	case "eq":
		return c == 0
	case "ne":
		return c != 0
	case "lt", "lo":
		return c < 0
	case "le", "ls":
		return c <= 0
	case "gt", "hi":
		return c > 0
	}
	return c >= 0
}

func combine(in *ptx.Inst, p bool, other uint64) bool {
	switch {
	case in.Has("and"):
		return p && other != 0
	case in.Has("or"):
		return p || other != 0
	case in.Has("xor"):
		return p != (other != 0)
	}
	return p
}

func setp(in *ptx.Inst, v []uint64) (p, q uint64) {
	t, _ := ptx.TypeByName(in.Mods[len(in.Mods)-1])
	other := uint64(0)
	if len(v) > 2 {
		other = v[2]
	}
	if half := map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}[t]; half != ptx.NoType {
		return boolean(combine(in, holds(in, half, v[0]&0xffff, v[1]&0xffff), other)), boolean(combine(in, holds(in, half, v[0]>>16, v[1]>>16), other))
	}
	yes := holds(in, t, v[0], v[1])
	return boolean(combine(in, yes, other)), boolean(combine(in, !yes, other))
}

func set(in *ptx.Inst, d ptx.Type, v []uint64) (uint64, error) {
	t, _ := ptx.TypeByName(in.Mods[len(in.Mods)-1])
	other := uint64(0)
	if len(v) > 2 {
		other = v[2]
	}
	one := func(yes bool) uint64 {
		switch yes = combine(in, yes, other); {
		case !yes:
			return 0
		case d == ptx.F32 || d == ptx.F16 || d == ptx.BF16:
			return small(1).encode(formatOf(d), "rn")
		}
		return truncate(1<<64-1, d.Size())
	}
	half := map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}[t]
	if half == ptx.NoType {
		return one(holds(in, t, v[0], v[1])), nil
	}
	if d.Float() { // else all bits of a true half are set
		d = half
	} else {
		d = ptx.U16
	}
	lo := one(holds(in, half, v[0]&0xffff, v[1]&0xffff))
	return lo | one(holds(in, half, v[0]>>16, v[1]>>16))<<16, nil
}
