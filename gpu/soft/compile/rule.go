package compile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// An instruction is refused for one of two reasons, and the functions of this file make
// all errors of instructions: it breaks a rule of PTX (broken), or it has a form that is
// not implemented (missing). ptx.Error adds the line and the instruction.

// broken returns the error of an instruction that breaks a rule: the rule, and what was
// found instead.
func broken(in *ptx.Inst, found any, rule string, args ...any) *ptx.Error {
	return in.Errorf("%s, found %v", fmt.Sprintf(rule, args...), found)
}

// missing returns the error of an instruction whose form is not implemented. The form
// names what decides: an opcode, a qualifier, a combination of them.
func missing(in *ptx.Inst, form string, args ...any) *ptx.Error {
	return in.Errorf("not implemented: %s", fmt.Sprintf(form, args...))
}

// missingQualifiers returns the error of an instruction that has qualifiers, in order,
// that are not implemented.
func missingQualifiers(in *ptx.Inst, mods []string) *ptx.Error {
	return missing(in, "%s with qualifiers %s", in.Op, qualifiers(mods))
}

// missingOperation returns the error of an instruction that ops.txt has no line for. It
// names the opcode, the first qualifier or the combination that no line has.
func missingOperation(in *ptx.Inst) *ptx.Error {
	known, forms := map[string]bool{}, 0
	for key := range ops.Operations() {
		words := strings.FieldsFunc(key, func(r rune) bool { return r == '.' || r == '/' })
		if words[0] != in.Op {
			continue
		}
		forms++
		for _, w := range words[1:] {
			known[w] = true
		}
	}
	if forms == 0 {
		return missing(in, "opcode %s", in.Op)
	}
	for _, m := range in.Mods {
		if !known[m] {
			return missing(in, "%s with qualifier .%s", in.Op, m)
		}
	}
	return missingQualifiers(in, in.Mods)
}

// operands returns an error unless an instruction has one of these numbers of operands.
func operands(in *ptx.Inst, counts ...int) error {
	if slices.Contains(counts, len(in.Args)) {
		return nil
	}
	return wrongOperands(in, len(in.Args), counts...)
}

// wrongOperands returns the error of an instruction that has n operands. counts are the
// numbers that it may have.
func wrongOperands(in *ptx.Inst, n int, counts ...int) *ptx.Error {
	words := make([]string, len(counts))
	for i, c := range counts {
		words[i] = strconv.Itoa(c)
	}
	return broken(in, n, "%s must have %s", nameOf(in), countOf(strings.Join(words, " or "), "operand"))
}

// fewOperands returns the error of an instruction that has n operands, and must have at
// least so many.
func fewOperands(in *ptx.Inst, n, least int) *ptx.Error {
	return broken(in, n, "%s must have at least %s", nameOf(in), countOf(strconv.Itoa(least), "operand"))
}

// wrongLength returns the error of an operand that is not a vector of n elements.
func wrongLength(in *ptx.Inst, o *ptx.Operand, n int) *ptx.Error {
	return broken(in, kindOf(o), "an operand of %s must be a vector of %d elements", nameOf(in), n)
}

// wrongRegister returns the error of a register that is not of the class that the
// instruction needs there.
func (c *compiler) wrongRegister(reg int, want ir.Class) *ptx.Error {
	r := &c.fr.f.Regs[reg]
	return broken(c.in, "."+r.Type.String(), "%s must be %s", r.Name, className(want))
}

// smallRegister returns the error of a register that does not hold a value of a type.
func (c *compiler) smallRegister(reg int, t ptx.Type) *ptx.Error {
	r := &c.fr.f.Regs[reg]
	return broken(c.in, "."+r.Type.String(), "register %s must hold the %d bytes of a .%s", r.Name, t.Size(), t)
}

// className returns what a register of a class is called.
func className(c ir.Class) string {
	switch c {
	case ir.Class64:
		return "a register of 64 bits"
	case ir.ClassPred:
		return "a predicate"
	}
	return "a register of at most 32 bits"
}

// countOf returns a number with what is counted.
func countOf(n, noun string) string {
	if n == "1" {
		return n + " " + noun
	}
	return n + " " + noun + "s"
}

// nameOf returns the opcode of an instruction with its qualifiers, as it is written.
func nameOf(in *ptx.Inst) string { return strings.Join(append([]string{in.Op}, in.Mods...), ".") }

// qualifiers returns qualifiers as they are written, or "none".
func qualifiers(mods []string) string {
	if len(mods) == 0 {
		return "none"
	}
	return "." + strings.Join(mods, ".")
}

// foundOf returns an operand for messages: the value of an integer, or what it is.
func foundOf(o *ptx.Operand) string {
	if o.Kind == ptx.KindInt {
		return strconv.FormatUint(o.Bits, 10)
	}
	return kindOf(o)
}

// kindOf returns what an operand is, for messages.
func kindOf(o *ptx.Operand) string {
	switch o.Kind {
	case ptx.KindReg:
		return "a register"
	case ptx.KindInt:
		return "an integer"
	case ptx.KindF32, ptx.KindF64:
		return "a floating-point constant"
	case ptx.KindVar:
		return "variable " + o.Var.Name
	case ptx.KindFunc:
		return "function " + o.Func.Name
	case ptx.KindSpecial:
		return o.Name
	case ptx.KindVec:
		return fmt.Sprintf("a vector of %d", len(o.List))
	case ptx.KindMem:
		return "a memory operand"
	case ptx.KindLabel:
		return "a label"
	case ptx.KindPair:
		return "two registers"
	case ptx.KindSink:
		return "_"
	}
	return "a list"
}
