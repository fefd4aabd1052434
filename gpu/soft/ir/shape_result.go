package ir

import "strings"

// result is the shape of one of an operation's results, all of whose sources
// have shapes.
func (s *Shapes) result(o Op, r Ref) Shape {
	switch o := o.(type) {
	case *Arith:
		return s.arith(o)
	case *Load:
		if o.Fixed && o.Space == Param || o.Space != Local && o.Space != Generic && s.Of(o.Base).Kind == Uniform {
			return uniform
		}
		return varying
	case *Select:
		return s.selected(o)
	case *CopyReg:
		return s.Of(o.From)
	case *Clock:
		return uniform
	case *Pack, *Unpack, *Logic, *LogicPair, *Convert, *Carry:
		return s.lanewise(o)
	}
	return varying
}

// lanewise is the shape of what each lane computes from its own values.
func (s *Shapes) lanewise(o Op) Shape {
	_, sources := o.Registers()
	for _, r := range sources {
		if s.Of(r).Kind != Uniform {
			return varying
		}
	}
	return uniform
}

func (s *Shapes) selected(o *Select) Shape {
	a, b := s.Of(o.A), s.Of(o.B)
	if s.Of(o.P.Ref()).Kind == Uniform && a.scalar() && b.scalar() {
		return a.join(b)
	}
	return varying
}

// arith is the shape of an operation of the table: affine where the operation is
// linear in the sources that are.
func (s *Shapes) arith(o *Arith) Shape {
	if v := s.lanewise(o); v == uniform {
		return v
	}
	in := make([]Shape, len(o.S))
	for i, r := range o.S {
		if in[i] = s.Of(r); !in[i].scalar() {
			return varying
		}
	}
	name, typ, _ := cutLast(o.F.Name)
	switch {
	case name == "add" && whole(typ):
		return affine(in[0].Stride+in[1].Stride, o.D.Class)
	case name == "sub" && whole(typ):
		return affine(in[0].Stride-in[1].Stride, o.D.Class)
	case name == "plus" || name == "mov":
		return affine(in[0].Stride, o.D.Class)
	case name == "mul.lo" && whole(typ), name == "mul.wide" && wide(typ):
		return s.product(o, in)
	case name == "mad.lo" && whole(typ), name == "mad.wide" && wide(typ):
		if v := s.product(o, in); v.scalar() {
			return affine(v.Stride+in[2].Stride, o.D.Class)
		}
	case name == "shl" && (typ == "b32" || typ == "b64") && in[1].Kind == Uniform:
		if n, ok := s.constant(o.S[1]); ok && n < 64 {
			return affine(in[0].Stride<<n, o.D.Class)
		}
	case (name == "cvt.u64" || name == "cvt.s64") && wide(typ), (name == "cvt.u32" || name == "cvt.s32") && (typ == "u64" || typ == "s64"):
		return affine(in[0].Stride, o.D.Class)
	}
	return varying
}

// product is the shape of the first two sources' product; one of them must be a
// constant of the program, for the stride to be one.
func (s *Shapes) product(o *Arith, in []Shape) Shape {
	if in[0].Kind == Uniform && in[1].Kind == Uniform {
		return uniform
	}
	for i := range 2 {
		if c, ok := s.constant(o.S[i]); ok {
			if strings.HasSuffix(o.F.Name, "s32") {
				c = uint64(int64(int32(c)))
			}
			return affine(in[1-i].Stride*c, o.D.Class)
		}
	}
	return varying
}

// constant is the value of a register that is one of the program's constants.
func (s *Shapes) constant(r Ref) (uint64, bool) {
	if r.Class == Class64 {
		v, ok := s.p.Const64[r.Slot]
		return v, ok
	}
	v, ok := s.p.Const32[r.Slot]
	return uint64(v), ok && r.Class == Class32
}

// whole says that arithmetic of a type is that of its register's width.
func whole(typ string) bool { return typ == "u32" || typ == "s32" || typ == "u64" || typ == "s64" }

// wide says that a type is widened from 32 to 64 bits.
func wide(typ string) bool { return typ == "u32" || typ == "s32" }

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
