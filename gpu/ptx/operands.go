package ptx

import "strings"

// OperandTypes returns the types that an instruction's text requires of its
// operands, destination first (PTX ISA, each instruction's "Semantics" and
// syntax). It is nil for instructions whose operands follow other rules: control
// flow, memory, texture and warp instructions.
func (in *Inst) OperandTypes() []Type {
	var types []Type
	for _, m := range in.Mods {
		if t, ok := TypeByName(m); ok {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return nil
	}
	first, last := types[0], types[len(types)-1]
	switch in.Op {
	case "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "brev",
		"fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "copysign", "addc", "subc", "madc",
		"and", "or", "xor", "not", "cnot", "lop3", "shf", "prmt":
		if in.Has("wide") {
			return []Type{last.wider(), last, last, last.wider()}
		}
		return []Type{last, last, last, last, U32, Pred}
	case "popc", "clz", "bfind":
		return []Type{U32, last}
	case "bmsk", "szext":
		return []Type{last, last, U32}
	case "fns":
		return []Type{B32, B32, B32, S32}
	case "bfe":
		return []Type{last, last, U32, U32}
	case "bfi":
		return []Type{last, last, last, U32, U32}
	case "shl", "shr":
		return []Type{last, last, U32}
	case "dp4a", "dp2a":
		return []Type{B32, B32, B32, B32}
	case "testp":
		return []Type{Pred, last}
	case "setp":
		return []Type{Pred, last, last, Pred}
	case "set":
		return []Type{first, last, last, Pred}
	case "selp":
		return []Type{last, last, last, Pred}
	case "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vadd2", "vsub2", "vabsdiff2", "vmin2", "vmax2", "vavrg2", "vmad",
		"vadd4", "vsub4", "vabsdiff4", "vmin4", "vmax4", "vavrg4":
		if len(types) == 3 { // video instructions: of the result, and of both sources
			return append(types, first)
		}
		return nil
	case "vshl", "vshr":
		return append(types, first)
	case "vset", "vset2", "vset4":
		return append(append([]Type{U32}, types...), U32)
	case "slct":
		return []Type{first, first, first, last}
	case "cvt":
		return []Type{first, last, last}
	case "mov":
		return []Type{last, last}
	}
	return nil
}

// Parts returns the parts of a register that a video instruction uses, such as "b0"
// and "h10"; empty: all of it.
func (o *Operand) Parts() string {
	if o.Kind != KindReg {
		return ""
	}
	return o.Name
}

// isVideo reports whether an instruction is one of those that use parts of registers.
func (in *Inst) isVideo() bool { return len(in.Op) > 1 && in.Op[0] == 'v' && in.Op != "vote" }

// parts returns the operand of a register whose name is followed by the selected parts
// (PTX ISA, "Video Instructions"): one, or a digit for each, beginning with the
// highest.
func (s *funcState) parts(w string) (Operand, bool) {
	dot := strings.LastIndexByte(w, '.')
	if dot < 0 {
		return Operand{}, false
	}
	name, parts := w[:dot], w[dot+1:]
	r, ok := s.reg(name)
	if !ok || len(parts) < 2 || len(parts) > 5 || parts[0] != 'b' && parts[0] != 'h' || strings.Trim(parts[1:], "01234567") != "" {
		return Operand{}, false
	}
	return Operand{Kind: KindReg, Reg: r, Name: parts}, true
}

// wider returns the integer type of twice the size.
func (t Type) wider() Type {
	switch t {
	case U16:
		return U32
	case S16:
		return S32
	case U32:
		return U64
	case S32:
		return S64
	}
	return NoType
}
