package compile

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// videoOps has the video instructions on one part of each source, on two halves and on
// four bytes.
var videoOps = map[uint][]string{
	1: {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"},
	2: {"vadd2", "vsub2", "vabsdiff2", "vmin2", "vmax2", "vavrg2", "vset2"},
	4: {"vadd4", "vsub4", "vabsdiff4", "vmin4", "vmax4", "vavrg4", "vset4"},
}

// addVideo adds their decoders.
func addVideo() {
	for parts, names := range videoOps {
		for _, name := range names {
			v := ops.Video{Parts: parts, Op: strings.TrimRight(name[1:], "24")}
			decoders[name] = func(c *compiler, in *ptx.Inst) ([]ir.Op, error) { return c.video(in, v) }
		}
	}
}

func (c *compiler) video(in *ptx.Inst, v ops.Video) ([]ir.Op, error) {
	rest, err := videoTypes(in, &v)
	if err != nil {
		return nil, err
	}
	if len(in.Args) < 3 {
		return nil, fewOperands(in, len(in.Args), 3)
	}
	if len(rest) > 0 && rest[0] == "sat" && v.Op != "set" {
		v.Sat, rest = true, rest[1:]
	}
	if how := map[string][]string{"shl": {"clamp", "wrap"}, "shr": {"clamp", "wrap"}, "set": {"eq", "ne", "lt", "le", "gt", "ge"}}[v.Op]; how != nil {
		if len(rest) == 0 || !slices.Contains(how, rest[0]) {
			return nil, broken(in, qualifiers(rest), "the types of %s must be followed by one of .%s", in.Op, strings.Join(how, ", ."))
		}
		v.Op, rest = v.Op+" "+rest[0], rest[1:]
	}
	if len(rest) == 1 && slices.Contains([]string{"add", "min", "max"}, rest[0]) {
		v.Then, rest = rest[0], nil
	}
	// The PTX ISA defines the addition to an unclamped result, and not the minimum with
	// it. Several parts are only added up unclamped.
	bounded := v.Sat || strings.HasPrefix(v.Op, "set")
	if len(rest) > 0 || v.Parts == 1 && !bounded && (v.Then == "min" || v.Then == "max") || v.Parts > 1 && (v.Then != "" && v.Then != "add" || v.Then == "add" && v.Sat) {
		return nil, missingQualifiers(in, in.Mods)
	}
	v.Sources = 3
	if v.Parts == 1 && v.Then == "" && in.Args[0].Parts() == "" {
		v.Sources = 2
	}
	if err := operands(in, v.Sources+1); err != nil {
		return nil, err
	}
	if v.Sources == 3 && in.Args[3].Parts() != "" {
		return nil, broken(in, "."+in.Args[3].Parts(), "the last operand of %s must be a whole register", in.Op)
	}
	if !selectParts(&v, in.Args) {
		return nil, broken(in, selectedParts(in.Args), "%s must select %s", in.Op, partsRules[v.Parts])
	}
	return c.apply(v.Operation(), in.Args, ptx.B32)
}

// videoTypes decodes the types of the result and the sources, and returns the
// qualifiers after them. The result of a comparison has no type: it is 1 or 0.
func videoTypes(in *ptx.Inst, v *ops.Video) (rest []string, err error) {
	first := 0
	if v.Op == "set" {
		first = 1
	}
	if len(in.Mods) < 3-first {
		return nil, broken(in, len(in.Mods), "%s must have %d types", in.Op, 3-first)
	}
	for i, m := range in.Mods[:3-first] {
		if v.Signed[first+i] = m == "s32"; m != "s32" && m != "u32" {
			return nil, broken(in, "."+m, "type %d of %s must be .u32 or .s32", i+1, in.Op)
		}
	}
	if (v.Op == "shl" || v.Op == "shr") && v.Signed[2] {
		return nil, broken(in, ".s32", "type 3 of %s, of the shift count, must be .u32", in.Op)
	}
	return in.Mods[3-first:], nil
}

// partsRules describes the parts of registers that an instruction can select, by the
// number of parts that it works on.
var partsRules = map[uint]string{
	1: ".b0 to .b3, .h0 or .h1 of registers, and none of a result that an operation follows",
	2: ".h with 2 digits of 0 to 3 of a source, and .h with falling digits of 1 to 0 of the result",
	4: ".b with 4 digits of 0 to 7 of a source, and .b with falling digits of 3 to 0 of the result",
}

// selectedParts returns the parts of registers that operands name.
func selectedParts(args []ptx.Operand) string {
	var list []string
	for i := range args {
		if p := args[i].Parts(); p != "" {
			list = append(list, "."+p)
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// selectParts decodes the selectors after the registers, and reports whether they are
// valid.
func selectParts(v *ops.Video, args []ptx.Operand) bool {
	if v.Parts == 1 {
		for i := range v.Of {
			var ok bool
			if v.Of[i], ok = rangeOf(args[i].Parts()); !ok {
				return false
			}
		}
		return args[0].Parts() == "" || v.Then == "" // a result is merged, or used by the second operation
	}
	letter, all := byte('h'), "h10"
	if v.Parts == 4 {
		letter, all = 'b', "b3210"
	}
	for i := range v.From {
		name := args[i+1].Parts()
		if name == "" {
			name = [2]string{all, map[uint]string{2: "h32", 4: "b7654"}[v.Parts]}[i]
		}
		if name[0] != letter || len(name) != int(v.Parts)+1 {
			return false
		}
		for part := range v.Parts { // the digit of the highest part is first
			digit := name[v.Parts-part] - '0'
			if uint(digit) >= 2*v.Parts {
				return false
			}
			v.From[i][part] = digit
		}
	}
	name := args[0].Parts()
	if name == "" {
		name = all
	}
	for _, digit := range name[1:] {
		bit := uint8(1) << (digit - '0')
		if name[0] != letter || uint(digit-'0') >= v.Parts || v.Mask != 0 && v.Mask&-v.Mask <= bit { // digits must decrease
			return false
		}
		v.Mask |= bit
	}
	return true
}

// rangeOf returns a byte or a half of a register, or all of it.
func rangeOf(name string) (r ops.BitRange, ok bool) {
	switch {
	case name == "":
		return ops.BitRange{Bits: 32}, true
	case len(name) != 2:
		return r, false
	}
	r = ops.BitRange{Bits: 8}
	if name[0] == 'h' {
		r.Bits = 16
	}
	r.From = uint(name[1]-'0') * r.Bits
	return r, r.From < 32
}
