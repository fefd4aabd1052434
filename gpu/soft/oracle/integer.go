package oracle

import (
	"errors"
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

func signExtend(v uint64, t ptx.Type) uint64 {
	n := 64 - 8*t.Size()
	return uint64(int64(v<<n) >> n)
}

// integer returns the value of the bits v, read as type t.
func integer(v uint64, t ptx.Type) *big.Int {
	v = truncate(v, t.Size())
	if t.Signed() {
		return big.NewInt(int64(signExtend(v, t)))
	}
	return new(big.Int).SetUint64(v)
}

func two(n uint32) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }

// wrap returns x modulo 2^bits.
func wrap(x *big.Int, bits uint32) uint64 {
	return new(big.Int).Mod(x, two(bits)).Uint64()
}

// shiftDown returns x >> n, rounded down.
func shiftDown(x *big.Int, n uint32) *big.Int { return new(big.Int).Rsh(x, uint(n)) }

func clamp(x, lo, hi *big.Int) *big.Int {
	if x.Cmp(lo) < 0 {
		return lo
	}
	if x.Cmp(hi) > 0 {
		return hi
	}
	return x
}

func limits(t ptx.Type) (lo, hi *big.Int) {
	bits := 8 * t.Size()
	one := big.NewInt(1)
	if t.Signed() {
		return new(big.Int).Neg(two(bits - 1)), new(big.Int).Sub(two(bits-1), one)
	}
	return new(big.Int), new(big.Int).Sub(two(bits), one)
}

// eval evaluates one instruction for one thread. v are the bits of the sources, and
// types the types of the result and the sources.
func eval(in *ptx.Inst, types []ptx.Type, v []uint64, carry *uint64) (uint64, error) {
	t := types[1]
	if in.Op[0] == 'v' {
		if in.Op == "vmad" {
			return vmad(in, types, v), nil
		}
		return video(in, types, v), nil
	}
	switch in.Op {
	case "selp":
		if v[2] != 0 {
			return v[0], nil
		}
		return v[1], nil
	case "slct":
		if ge := types[3]; ge == ptx.F32 {
			x := decode(v[2], f32format)
			if in.Has("ftz") {
				x = x.flushed(f32format)
			}
			if x.nan || x.sign() < 0 {
				return v[1], nil
			}
		} else if integer(v[2], ptx.S32).Sign() < 0 {
			return v[1], nil
		}
		return v[0], nil
	case "set":
		return set(in, types[0], v)
	case "cvt":
		return convert(in, v)
	case "testp":
		return testp(in, v[0], formatOf(t)), nil
	}
	if t == ptx.Pred {
		r, ok := bitwise(in.Op, t, v)
		if !ok {
			return 0, missing("%s of type .%s", in.Op, t)
		}
		return r & 1, nil
	}
	if t == ptx.F16x2 || t == ptx.BF16x2 {
		half := ptx.F16
		if t == ptx.BF16x2 {
			half = ptx.BF16
		}
		as := *in
		as.Mods = append(append([]string{}, in.Mods[:len(in.Mods)-1]...), half.String())
		lo, hi := make([]uint64, len(v)), make([]uint64, len(v))
		for i, x := range v {
			lo[i], hi[i] = x&0xffff, x>>16&0xffff
		}
		x, err := float(&as, half, lo)
		y, err2 := float(&as, half, hi)
		return x | y<<16, errors.Join(err, err2)
	}
	if t == ptx.U16x2 || t == ptx.S16x2 {
		as, half := *in, map[ptx.Type]ptx.Type{ptx.U16x2: ptx.U16, ptx.S16x2: ptx.S16}[t]
		as.Mods = append(append([]string{}, in.Mods[:len(in.Mods)-1]...), half.String())
		x, err := eval(&as, as.OperandTypes(), []uint64{v[0] & 0xffff, v[1] & 0xffff}, carry)
		y, err2 := eval(&as, as.OperandTypes(), []uint64{v[0] >> 16, v[1] >> 16}, carry)
		return x | y<<16, errors.Join(err, err2)
	}
	if in.Has("relu") && t.Signed() { // the same without .relu, and at least zero
		as := *in
		as.Mods = []string{t.String()}
		r, err := eval(&as, types, v, carry)
		if integer(r, t).Sign() < 0 {
			r = 0
		}
		return r, err
	}
	if t.Float() {
		return float(in, t, v)
	}
	if in.Has("cc") || in.Op == "addc" || in.Op == "subc" || in.Op == "madc" {
		return withCarry(in, t, v, carry)
	}
	if r, ok := bitwise(in.Op, t, v); ok {
		return r, nil
	}
	if r, ok := bitField(in, t, v); ok {
		return r, nil
	}
	return arithmetic(in, t, v)
}

// bitwise evaluates a bitwise operation. It returns false for another opcode.
func bitwise(op string, t ptx.Type, v []uint64) (uint64, bool) {
	switch op {
	case "and":
		return v[0] & v[1], true
	case "or":
		return v[0] | v[1], true
	case "xor":
		return v[0] ^ v[1], true
	case "not":
		return truncate(^v[0], t.Size()), true
	case "cnot":
		if truncate(v[0], t.Size()) == 0 {
			return 1, true
		}
		return 0, true
	case "lop3":
		var d uint64
		for i := range 32 {
			row := v[0]>>i&1<<2 | v[1]>>i&1<<1 | v[2]>>i&1
			d |= v[3] >> row & 1 << i
		}
		return d, true
	}
	return 0, false
}

func arithmetic(in *ptx.Inst, t ptx.Type, v []uint64) (uint64, error) {
	bits := 8 * t.Size()
	x := make([]*big.Int, len(v))
	for i := range v {
		x[i] = integer(v[i], t)
	}
	r := new(big.Int)
	switch in.Op {
	case "add":
		r.Add(x[0], x[1])
	case "sub":
		r.Sub(x[0], x[1])
	case "neg":
		r.Neg(x[0])
	case "abs":
		r.Abs(x[0])
	case "min", "max":
		r = x[0]
		if c := x[0].Cmp(x[1]); in.Op == "min" && c > 0 || in.Op == "max" && c < 0 {
			r = x[1]
		}
	case "sad":
		r.Add(r.Abs(r.Sub(x[0], x[1])), x[2])
	case "div", "rem":
		if x[1].Sign() == 0 { // undefined in PTX
			return truncate(1<<64-1, t.Size()), nil
		}
		if r.Quo(x[0], x[1]); in.Op == "rem" {
			r.Rem(x[0], x[1])
		}
	case "mul24", "mad24":
		a, b := v[0]<<40, v[1]<<40 // the low 24 bits, shifted to the top
		if t.Signed() {
			r.Mul(big.NewInt(int64(a)>>40), big.NewInt(int64(b)>>40))
		} else {
			r.Mul(new(big.Int).SetUint64(a>>40), new(big.Int).SetUint64(b>>40))
		}
		if in.Has("hi") {
			r = shiftDown(r, 16)
		}
		if in.Op == "mad24" {
			r.Add(r, x[2])
		}
	case "mul", "mad":
		r.Mul(x[0], x[1])
		switch {
		case in.Has("hi"):
			r = shiftDown(r, bits)
		case in.Has("wide"):
			bits *= 2
			if in.Op == "mad" {
				x[2] = new(big.Int).SetUint64(v[2])
			}
		}
		if in.Op == "mad" {
			r = new(big.Int).Add(r, x[2])
		}
	default:
		return 0, missing("%s of type .%s", in.Op, t)
	}
	if in.Has("sat") {
		lo, hi := limits(t)
		r = clamp(r, lo, hi)
	}
	return wrap(r, bits), nil
}

// withCarry evaluates extended-precision arithmetic (PTX ISA, "Extended-Precision
// Integer Arithmetic Instructions"). sub.cc sets the flag if it does not borrow, as a
// GPU does.
func withCarry(in *ptx.Inst, t ptx.Type, v []uint64, carry *uint64) (uint64, error) {
	bits := 8 * t.Size()
	u := func(i int) *big.Int { return new(big.Int).SetUint64(truncate(v[i], t.Size())) }
	flag := new(big.Int)
	r := new(big.Int)
	if in.Op[len(in.Op)-1] == 'c' {
		flag.SetUint64(*carry)
	}
	switch in.Op {
	case "add", "addc":
		r.Add(r.Add(u(0), u(1)), flag)
	case "sub", "subc":
		borrow := new(big.Int)
		if in.Op == "subc" && *carry == 0 {
			borrow.SetUint64(1)
		}
		r.Sub(r.Sub(u(0), u(1)), borrow)
		if in.Has("cc") {
			*carry = boolean(r.Sign() >= 0)
		}
		return wrap(r, bits), nil
	case "mad", "madc":
		p := new(big.Int).Mul(integer(v[0], t), integer(v[1], t))
		if in.Has("hi") {
			p = shiftDown(p, bits)
		}
		r.SetUint64(wrap(p, bits))
		r.Add(r.Add(r, u(2)), flag)
	default:
		return 0, missing("%s with a carry", in.Op)
	}
	if in.Has("cc") {
		*carry = 0
		if r.Cmp(two(bits)) >= 0 {
			*carry = 1
		}
	}
	return wrap(r, bits), nil
}
