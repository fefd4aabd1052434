package ptx

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func kernels(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../soft/testdata/kernels/*.ptx")
	if err != nil || len(names) == 0 {
		t.Fatalf("kernels in ../soft/testdata/kernels = %v, %v, want some", names, err)
	}
	m := map[string]string{}
	for _, n := range names {
		src, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		m[filepath.Base(n)] = string(src)
	}
	return m
}

func TestParseCompilerOutput(t *testing.T) {
	total := 0
	for name, src := range kernels(t) {
		m, err := Parse(src)
		if err != nil {
			t.Fatalf("Parse(%s) = %v, want no error", name, err)
		}
		sigs, err := Signatures(src)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, f := range m.Funcs {
			if !f.Entry {
				continue
			}
			total++
			if sigs[i].Name != f.Name || len(sigs[i].Params) != len(f.Params) {
				t.Errorf("signature %d = %+v, want kernel %s with %d parameters", i, sigs[i], f.Name, len(f.Params))
			}
			for j, p := range f.Params {
				if got := sigs[i].Params[j]; got.Offset != p.Offset || uint64(got.Size) != p.Size {
					t.Errorf("parameter %d of %s = %+v, want offset %d and size %d", j, f.Name, got, p.Offset, p.Size)
				}
			}
			i++
		}
	}
	if total < 25 {
		t.Errorf("%d kernels, want at least 25", total)
	}
}

// An outline equals the result of Parse, except for the bodies.
func TestOutline(t *testing.T) {
	for name, src := range kernels(t) {
		whole, err := Parse(src)
		if err != nil {
			t.Fatalf("Parse(%s) = %v, want no error", name, err)
		}
		m, err := Outline(src)
		if err != nil {
			t.Fatalf("Outline(%s) = %v, want no error", name, err)
		}
		if m.Arch != whole.Arch || len(m.Vars) != len(whole.Vars) || len(m.Funcs) != len(whole.Funcs) {
			t.Errorf("%s: outline has sm_%d, %d variables and %d functions, want %d, %d, %d",
				name, m.Arch, len(m.Vars), len(m.Funcs), whole.Arch, len(whole.Vars), len(whole.Funcs))
			continue
		}
		for i, f := range m.Funcs {
			w := whole.Funcs[i]
			if f.Name != w.Name || f.Entry != w.Entry || f.Extern != w.Extern || f.MaxTID != w.MaxTID || f.ParamBytes() != w.ParamBytes() || len(f.Body) != 0 {
				t.Errorf("%s: outline of %s = %+v, want the head of %+v", name, w.Name, f, w)
			}
		}
	}
	for src, want := range map[string]string{
		head + ".entry k() { // }\n": "line 5: function k has no end",
		head + ".entry k() { /* }":   "line 4: comment without end",
		head + ".entry k() { \"}":    "line 4: string without end",
		head + ".entry k() ret;":     "expected \"{\"",
		".entry k() { ret; }":        "no .version",
	} {
		if _, err := Outline(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Outline(%q) = %v, want %q", src, err, want)
		}
	}
	m, err := Outline(head + ".entry k() { { /* } */ .pragma \"}\"; // }\n div.s32 %r1, %r2, 1/2; } }\n.entry l() { ret; }")
	if err != nil || len(m.Funcs) != 2 || m.Funcs[1].Line != 6 {
		t.Errorf("outline with braces in comments and strings = %+v, %v, want 2 functions", m, err)
	}
}

const head = ".version 6.4\n.target sm_61\n.address_size 64\n"

func TestParameterLayout(t *testing.T) {
	sigs, err := Signatures(head + `.visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 4 .b8 c[6], .param .f64 d)
{ frobnicate.the.bits %x, [y, {1}]; ret; }`)
	if err != nil {
		t.Fatal(err)
	}
	want := []ParamLayout{{0, 1}, {8, 8}, {16, 6}, {24, 8}}
	if len(sigs) != 1 || sigs[0].Name != "k" || len(sigs[0].Params) != len(want) {
		t.Fatalf("signatures = %+v, want one of k with %d parameters", sigs, len(want))
	}
	for i, w := range want {
		if sigs[0].Params[i] != w {
			t.Errorf("parameter %d = %+v, want %+v", i, sigs[0].Params[i], w)
		}
	}
}

// Directives need no spaces between them; cuda_fp16.h contains ".reg.b16 h,r;".
func TestDirectivesWithoutBlanks(t *testing.T) {
	m, err := Parse(head + `.global.align 8 .b8 g[4];
.visible.entry k(.param.u64.ptr.global.align 16 a,.param.u32 b)
{.reg.b16 h,r;.reg.pred p;.shared.align 4 .b8 s[8];
@p mov.b16 h,r;ld.param.u32 _,[b];ret;}`)
	if err != nil {
		t.Fatal(err)
	}
	f := m.Funcs[0]
	if len(f.Regs) != 3 || f.Regs[1] != (Reg{Name: "r", Type: B16}) || len(f.Params) != 2 || len(f.Vars) != 1 || f.Vars[0].Space != Shared || len(f.Body) != 3 || len(m.Vars) != 1 {
		t.Errorf("parsed %+v and %d variables, want 3 registers, 2 parameters, a shared and a global variable", f, len(m.Vars))
	}
}

func TestErrorsNameLineAndInstruction(t *testing.T) {
	for _, c := range []struct{ src, msg string }{
		{head + ".entry k() {\n\tbra nowhere;\n}", "line 5: unknown name nowhere: bra nowhere;"},
		{head + ".entry k() {\n.reg .b32 %r<2>;\n\tadd.s32 %r0, %r1\n}", "line 6: "},
		{head + ".entry k() {\n@%p1 ret;\n}", "line 5: guard %p1"},
		{head + ".global .b32 a[4] = {1,2,3,4,5};", "the initialiser of variable a has 20 bytes, want at most its 16"},
		{head + ".entry k() { L: L: ret; }", "defined twice"},
		{head + ".entry k() {", "has no end"},
		{".target sm_61\n", "no .version"},
		{head + ".entry k() { .reg .b32 %r<300000>; }", "number \"300000\", want an integer of 0 to 262144"},
		{head + ".global .align 3 .b32 a;", "power of two"},
		{head + ".global .b8 a[1073741824][1073741824];", "variable a has more than 1073741824 bytes"},
		{head + ".entry k() " + strings.Repeat("{", 100), "function k has more than 64 scopes in each other"},
		{head + "/* ", "comment without end"},
		{head + ".global .u64 p = other;", "unknown variable other"},
	} {
		_, err := Parse(c.src)
		if err == nil || !strings.Contains(err.Error(), c.msg) {
			t.Errorf("Parse(%q) = %v, want %q", c.src, err, c.msg)
		}
	}
}

// Names can be as long as the source permits; messages are short.
func TestErrorsAreShort(t *testing.T) {
	name := strings.Repeat("n", 1<<20)
	for _, src := range []string{head + ".entry k() { bra " + name + "; }", head + ".entry k() { @" + name + " ret; }", head + ".target sm_" + name} {
		_, err := Parse(src)
		if err == nil || len(err.Error()) > 1024 {
			t.Errorf("error has %d bytes, want an error of at most 1024", len(fmt.Sprint(err)))
		}
	}
}

func TestScopesAndInitialisers(t *testing.T) {
	m, err := Parse(head + `
.global .align 8 .u64 ptrs[2] = {generic(tab)+4, tab};
.const .b32 tab[3] = {-1, 0f3F800000, 0x10};
.entry k() {
	.reg .b32 %r<12>;
	{ .reg .b32 %r<3>; mov.b32 %r2, 1; L: bra L; }
	{ L: mov.b32 %r11, 2; bra L; }
	ret;
}`)
	if err != nil {
		t.Fatal(err)
	}
	tab := m.Vars[1]
	if r := m.Vars[0].Relocs; len(r) != 2 || r[0] != (Reloc{0, "tab", 4, true, 8, tab, nil}) || r[1] != (Reloc{8, "tab", 0, false, 8, tab, nil}) {
		t.Errorf("relocations = %+v, want tab+4 (generic) and tab", r)
	}
	if got := string(m.Vars[1].Init); got != "\xff\xff\xff\xff\x00\x00\x80\x3f\x10\x00\x00\x00" {
		t.Errorf("initialiser = %x, want ffffffff0000803f10000000", got)
	}
	b := m.Funcs[0].Body
	if b[0].Args[0].Reg != 12+2 || b[2].Args[0].Reg != 11 {
		t.Errorf("registers = %d and %d, want 14 and 11", b[0].Args[0].Reg, b[2].Args[0].Reg)
	}
	if b[1].Args[0].Target != 1 || b[3].Args[0].Target != 2 {
		t.Errorf("branch targets = %d and %d, want 1 and 2", b[1].Args[0].Target, b[3].Args[0].Target)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range kernels(f) {
		f.Add(src[:min(len(src), 3000)])
	}
	f.Add(head + ".entry k(.param .u64 a) { .reg .pred %p<2>; @!%p1 bra L; L: {.reg .b32 t; mov.b32 t, {1,2};} ts: .branchtargets L, L; brx.idx t, ts; }")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := Parse(src)
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("Parse error without a line: %v", err)
		}
		if _, serr := Signatures(src); err == nil && serr != nil {
			t.Errorf("Parse accepts the source, but Signatures = %v", serr)
		}
		if _, oerr := Outline(src); err == nil && oerr != nil {
			t.Errorf("Parse accepts the source, but Outline = %v", oerr)
		}
		_ = m
	})
}

func TestFtzAfterTheType(t *testing.T) {
	m, err := Parse(head + ".entry k() { .reg .f32 %f<2>; lg2.approx.f32.ftz %f0, %f1; ret; }")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Funcs[0].Body[0].Mods; !slices.Equal(got, []string{"approx", "ftz", "f32"}) {
		t.Errorf("modifiers = %v, want approx, ftz, f32: the type last", got)
	}
}
