package soft_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/compile"
)

// TestForms checks that a kernel of one instruction compiles for each form of
// testdata/forms.txt.
func TestForms(t *testing.T) {
	text, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	var forms []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if line[0] == '#' {
			continue
		}
		for _, f := range words[1:] {
			forms = append(forms, words[0]+strings.TrimSuffix(f, "."))
		}
	}
	if len(forms) != 734 {
		t.Fatalf("testdata/forms.txt has %d forms, want 734", len(forms))
	}
	var src strings.Builder
	src.WriteString(matrixHead + ".const .align 16 .b8 c[16]; .shared .align 16 .b8 sh[16]; .func (.param .b32 r) fn(.param .b32 a) { ret; }\n")
	for i, f := range forms {
		fmt.Fprintf(&src, ".entry k%d(.param .align 16 .b8 p[64]) {\n.reg .b16 %%h<8>; .reg .b32 %%r<20>; .reg .b64 %%d<8>; .reg .pred %%p<4>; .param .align 16 .b8 q[64]; .param .b32 v, w;\n%s;\nL: ret; }\n", i, formInstruction(f))
	}
	kernels, err := compile.DefaultCapability.Check([]byte(src.String()))
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range kernels {
		if k.Err != nil {
			t.Errorf("%s: %v", forms[i], k.Err)
		}
	}
}

// formOperands has the operands of instructions of which all forms have the same.
var formOperands = map[string]string{
	"activemask": "%r1", "bar.sync": "0", "bar.warp.sync": "-1", "bar.red.or.pred": "%p0, 0, %p1", "bar.red.and.pred": "%p0, 0, %p1", "barrier.sync": "0",
	"bra": "L", "call": "(v), fn, (w)", "cp.async.wait_all": "", "cp.async.commit_group": "", "cp.async.wait_group": "0", "cp.async.mbarrier": "[%r0]", "cp.async": "[%r0], [%d0], 16",
	"exit": "", "ret": "", "trap": "", "fence": "", "membar": "", "griddepcontrol": "", "nanosleep": "20",
	"match": "%r0, %0, -1", "mbarrier.init": "[%r0], 1", "mbarrier.inval": "[%r0]", "mbarrier.arrive": "%d0, [%r0]", "mbarrier.test_wait.parity": "%p0, [%r0], 0", "mbarrier.test_wait": "%p0, [%r0], %d0",
	"movmatrix": "%r0, %r1", "redux": "%r0, %r1, -1", "shfl": "%r0|%p0, %r1, 1, 31, -1",
	"vote.ballot": "%r0, %p0, -1", "vote.sync.ballot": "%r0, %p0, -1", "vote": "%p0, %p1, -1",
	"ldmatrix": "{%T}, [%A]", "tex.1d": "{%r0, %r1, %r2, %r3}, [%d0, {%r4}]", "tex.2d": "{%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5}]", "tex.3d": "{%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5, %r6, %r7}]",
	"tex.a2d": "{%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5, %r6, %r7}]", "tex.cube": "{%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5, %r6, %r7}]", "tex.level.2d": "{%r0, %r1, %r2, %r3}, [%d0, {%r4, %r5}], %r6",
	"sust.b.1d": "[%d0, {%r0}], %V", "sust.b.2d": "[%d0, {%r0, %r1}], %V", "sust.b.a2d": "[%d0, {%r0, %r1, %r2, %r3}], %V", "sust.b.3d": "[%d0, {%r0, %r1, %r2, %r3}], %V",
	"cvta": "%d0, %d1", "lop3": "%r0, %r1, %r2, %r3, 0x80",
}

// formCounts has the numbers of operands of instructions whose types OperandTypes
// returns.
var formCounts = map[string]int{
	"abs": 2, "neg": 2, "not": 2, "rcp": 2, "sqrt": 2, "rsqrt": 2, "sin": 2, "cos": 2, "ex2": 2, "lg2": 2, "tanh": 2, "popc": 2, "clz": 2, "brev": 2, "bfind": 2, "mov": 2, "cvt": 2,
	"mad": 4, "fma": 4, "madc": 4, "dp4a": 4, "prmt": 4, "shf": 4, "selp": 4, "bfe": 4, "bfi": 5, "vabsdiff4": 4,
}

// formInstruction returns an instruction with operands for a form.
func formInstruction(form string) string {
	words := strings.Split(form, ".")
	op, mods := words[0], words[1:]
	switch op {
	case "ld", "st", "atom", "red":
		return form + " " + formAccess(op, mods)
	case "mma":
		f := mmaFormOf(form)
		return fmt.Sprintf("%s %s, %s, %s, %s", form, formFragment(f.types[0], f.regs[0]), formFragment(f.types[1], f.regs[1]), formFragment(f.types[2], f.regs[2]), formFragment(f.types[3], f.regs[3]))
	case "wmma":
		return form + " " + formWmma(form, mods)
	}
	for n := len(words); n > 0; n-- {
		if args, ok := formOperands[strings.Join(words[:n], ".")]; ok {
			return form + " " + formVariables(args, mods)
		}
	}
	in := ptx.Inst{Op: op, Mods: mods}
	types := in.OperandTypes()
	count := 3
	if n := formCounts[op]; n > 0 {
		count = n
	}
	if op == "cvt" && mods[len(mods)-1] == "f32" && strings.Contains(mods[len(mods)-2], "x2") {
		count, types = 3, append(types, types[len(types)-1])
	}
	var args []string
	for i := range count {
		args = append(args, formRegister(types[i], i))
	}
	return form + " " + strings.Join(args, ", ")
}

// formVariables replaces what depends on the form: an element of the last type, the
// registers of tiles, an address, a vector.
func formVariables(args string, mods []string) string {
	t, _ := ptx.TypeByName(mods0(mods))
	for _, m := range mods {
		if mt, ok := ptx.TypeByName(m); ok {
			t = mt
		}
		if len(m) == 2 && m[0] == 'x' {
			args = strings.ReplaceAll(args, "%T", strings.Trim(list("r", int(m[1]-'0')), "{}"))
		}
	}
	address := "%d0"
	if slices.Contains(mods, "shared") {
		address = "%r9"
	}
	value := formRegister(t, 8)
	if slices.Contains(mods, "v4") {
		value = fmt.Sprintf("{%s, %s, %s, %s}", formRegister(t, 3), formRegister(t, 4), formRegister(t, 5), formRegister(t, 6))
	} else if t.Size() < 4 {
		value = formRegister(t, 3)
	}
	return strings.NewReplacer("%A", address, "%V", value, "%0", formRegister(t, 3)).Replace(args)
}

func mods0(mods []string) string { return strings.Join(mods[:min(1, len(mods))], "") }

// formRegister returns register number i for a type.
func formRegister(t ptx.Type, i int) string {
	name := map[uint32]string{1: "h", 2: "h", 4: "r", 8: "d"}[t.Size()]
	if t == ptx.Pred {
		name, i = "p", i%4
	}
	return "%" + name + strconv.Itoa(i%20)
}

func formFragment(typ string, n int) string {
	if typ == "f64" {
		return list("d", n)
	}
	return list("r", n)
}

// formAccess returns the operands of a load, a store or an atomic operation.
func formAccess(op string, mods []string) string {
	t, vector, space := ptx.NoType, 1, ""
	hint := ""
	for _, m := range mods {
		if mt, ok := ptx.TypeByName(m); ok {
			t = mt
		}
		switch m {
		case "v2", "v4":
			vector = int(m[1] - '0')
		case "param", "shared", "local", "const", "global":
			space = m
		case "L2::cache_hint":
			hint = ", %d7"
		}
	}
	address := map[string]string{"": "%d0", "global": "%d0", "shared": "%r9", "local": "%r9", "const": "c", "param": map[bool]string{true: "p", false: "q"}[op == "ld"]}[space]
	var values []string
	for i := range vector {
		values = append(values, formRegister(t, i+1))
	}
	value := strings.Join(values, ", ")
	if vector > 1 {
		value = "{" + value + "}"
	}
	switch {
	case op == "ld":
		return value + ", [" + address + "]" + hint
	case op == "atom" && slices.Contains(mods, "cas"):
		return fmt.Sprintf("%s, [%s], %s, %s", formRegister(t, 3), address, value, value)
	case op == "atom":
		return fmt.Sprintf("%s, [%s], %s", formRegister(t, 3), address, value)
	}
	return "[" + address + "], " + value + hint
}

// formWmma returns the operands of a wmma.
func formWmma(form string, mods []string) string {
	var types []string
	for _, m := range mods {
		if elementBits[m] > 0 {
			types = append(types, m)
		}
	}
	address := "[%d0]"
	if slices.Contains(mods, "shared") {
		address = "[%r19]"
	}
	shape := shapePattern.FindString(form)
	if mods[0] == "mma" {
		all := types
		if len(types) == 2 {
			all = []string{types[0], "f16", "f16", types[1]}
		}
		regs := wmmaRegisters(shape, all)
		var list []string
		for i, n := range regs {
			list = append(list, formFragment(all[i], n))
		}
		return strings.Join(list, ", ")
	}
	// A matrix of one type: its size is that of all of the shape's.
	all := []string{types[0], types[0], types[0], types[0]}
	n := wmmaRegisters(shape, all)[strings.Index("dabc", mods[1])]
	if mods[0] == "store" {
		return address + ", " + formFragment(types[0], n)
	}
	return formFragment(types[0], n) + ", " + address
}
