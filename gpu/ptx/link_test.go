package ptx

import (
	"slices"
	"strings"
	"testing"
)

func linked(t *testing.T, sources ...string) (*Module, error) {
	t.Helper()
	var objects []Object
	for i, src := range sources {
		m, err := Parse(head + src)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, Object{Name: string(rune('a' + i)), Module: m})
	}
	return Link(objects)
}

// called returns the function that instruction i of a function calls.
func called(f *Func, i int) *Func {
	for _, a := range f.Body[i].Args {
		if a.Kind == KindFunc {
			return a.Func
		}
	}
	return nil
}

func TestLink(t *testing.T) {
	m, err := linked(t, `
.extern .func (.param .u32 r) lib (.param .u32 x);
.extern .shared .u32 scratch[4];
.extern .global .u64 table[2];
.global .u32 $LC0 = 1;
.visible .entry k() {
	.reg .u64 %r<4>; .param .u32 a; .param .u32 b;
	call (a), lib, (b);
	mov.u64 %r0, scratch;
	mov.u64 %r1, table;
	mov.u64 %r2, $LC0;
	mov.u64 %r3, lib;
	ret;
}`, `
.weak .func (.param .u32 r) lib (.param .u32 x) { trap; }
.weak .global .u32 w = 1;
.func helper() { trap; }
.global .u32 $LC0 = 2;`, `
.visible .func (.param .u32 r) lib (.param .u32 x);
.func helper() { ret; }
.visible .shared .u32 scratch[4];
.visible .global .u32 w = 3;
.global .u32 $LC0 = 4;
.visible .global .u64 table[2] = {helper, $LC0};
.visible .func (.param .u32 r) lib (.param .u32 x) { call helper; ret; }`)
	if err != nil {
		t.Fatal(err)
	}
	var k, lib *Func
	for _, f := range m.Funcs {
		switch {
		case f.Name == "k":
			k = f
		case f.Name == "lib" && lib == nil:
			lib = f
		case f.Name == "lib":
			t.Error("a weak function was not replaced by the strong one")
		}
	}
	if k == nil || lib == nil || lib.Object != "c" || called(k, 0) != lib || k.Body[4].Args[1].Func != lib {
		t.Fatalf("kernel = %+v and function = %+v, want both to call lib of object c", k, lib)
	}
	if h := called(lib, 0); h == nil || h.Object != "c" {
		t.Errorf("function called by lib = %+v, want helper of object c", h)
	}
	for i, want := range map[int]string{1: "c", 2: "c", 3: "a"} {
		if v := k.Body[i].Args[1].Var; v.Extern || v.Object != want {
			t.Errorf("instruction %d uses %s of object %q, want %q", i, v.Name, v.Object, want)
		}
	}
	names := map[string]int{}
	for _, v := range m.Vars {
		names[v.Name]++
		if r := v.Relocs; v.Name == "table" && (r[0].Func == nil || r[0].Func.Object != "c" || r[1].Var.Object != "c") {
			t.Errorf("initialiser of table = %+v, want addresses in object c", r)
		}
		if v.Name == "w" && v.Object != "c" {
			t.Errorf("object of w = %s, want c: the weak variable was not replaced", v.Object)
		}
	}
	if names["$LC0"] != 3 || names["w"] != 1 || names["table"] != 1 || names["scratch"] != 1 {
		t.Errorf("variables = %v, want 3 $LC0 and one each of w, table and scratch", names)
	}
}

func TestLinkErrors(t *testing.T) {
	for _, c := range []struct {
		a, b, want string
	}{
		{".extern .func f(); .entry k() { call f; ret; }", ".func f() { ret; }", "a: line 4: unresolved extern function f"},
		{".extern .global .u32 v; .entry k() { .reg .u64 %r; mov.u64 %r, v; ret; }", "", "a: line 4: unresolved extern variable v"},
		{".extern .func f(); .global .u64 p = f;", "", "a: line 4: unresolved extern function f"},
		{".visible .func f() { ret; }", "\n.visible .func f() { ret; }", "b: line 5: function f is already defined in a, line 4"},
		{".visible .global .u32 v;", "\n.visible .global .u32 v;", "b: line 5: variable v is already defined in a, line 4"},
		{".entry k() { ret; }", ".entry k() { ret; }", "b: line 4: function k is already defined in a, line 4"},
		{".visible .global .u32 v;", ".weak .shared .u32 v;", "b: line 4: variable v is .shared here and .global in a, line 4"},
		{".extern .shared .u32 v; .entry k() { .reg .u64 %r; mov.u64 %r, v; ret; }", ".visible .global .u32 v;", "a: line 4: variable v is .shared here and .global in b, line 4"},
		{".extern .func f(.param .u32 x); .entry k() { .param .u32 y; call f, (y); ret; }", ".visible .func f() { ret; }", "a: line 4: function f has other parameters than in b, line 4"},
	} {
		if _, err := linked(t, c.a, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Link of %s and %s = %v, want %q", c.a, c.b, err, c.want)
		}
	}
}

// A name that is declared and not used need not be defined; the device provides
// some functions.
func TestLinkLeavesUnusedNames(t *testing.T) {
	if _, err := linked(t, ".extern .func f(); .extern .global .u32 v; .extern .func (.param .u64 r) malloc (.param .u64 n);"+
		".visible .entry k() { .param .u64 a; .param .u64 b; call (a), malloc, (b); ret; }", ".common .global .u32 c; ", ".common .global .u64 c;"); err != nil {
		t.Error(err)
	}
}

// From a library, what others declare and do not define is included, and what
// that needs.
func TestLinkLibraries(t *testing.T) {
	var objects []Object
	for name, src := range map[string]string{
		"main":   ".extern .func f(); .visible .func own() { ret; } .visible .entry k() { call f; ret; }",
		"lib f":  ".extern .func g(); .extern .func own(); .visible .func f() { call g; ret; }",
		"lib g":  ".visible .global .u32 v; .visible .func g() { ret; }",
		"lib h":  ".extern .func nowhere(); .visible .func h() { call nowhere; ret; }",
		"lib me": ".visible .func own() { trap; }",
	} {
		m, err := Parse(head + src)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, Object{Name: name, Module: m, Library: name != "main"})
	}
	m, err := Link(objects)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range m.Funcs {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if want := []string{"f", "g", "k", "own"}; !slices.Equal(names, want) || len(m.Vars) != 1 {
		t.Errorf("functions = %v with %d variables, want %v with 1", names, len(m.Vars), want)
	}
}

func FuzzLink(f *testing.F) {
	f.Add(head+".extern .func f(); .global .u64 p = f;", head+".weak .func f() { ret; }")
	f.Add(head+".extern .shared .u32 s[]; .entry k() { .reg .u64 %r; mov.u64 %r, s; }", head+".common .shared .u32 s;")
	f.Fuzz(func(t *testing.T, a, b string) {
		m, err := Parse(a)
		if err != nil {
			return
		}
		n, err := Parse(b)
		if err != nil {
			return
		}
		if _, err := Link([]Object{{Name: "a", Module: m}, {Name: "b", Module: n, Library: true}}); err != nil && !strings.Contains(err.Error(), "line ") {
			t.Errorf("Link error without a line: %v", err)
		}
	})
}

func TestGCCDeclarations(t *testing.T) {
	m, err := Parse(head + `.func f() { ret; }
.entry k() {
	.reg .v2 .u32 %r94; .reg .u32 %s; .reg .u64 %p;
	mov.v2.u32 %r94, {0, 1};
	mov.u32 %s, %r94.y;
	{ .param .u64 %P<2>; st.param.u64 [%P1], %p; }
	call %p, $LCT0;
	$LCT0: .callprototype _;
	ret;
}`)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Funcs[1].Body
	if v := b[0].Args[0]; v.Kind != KindVec || len(v.List) != 2 || v.List[1].Reg != b[1].Args[1].Reg {
		t.Errorf("vector register = %+v with element %+v, want 2 elements", v, b[1].Args[1])
	}
	if v := b[2].Args[0].List[0].Var; v == nil || v.Name != "%P1" || v.Size != 8 {
		t.Errorf("parameter = %+v, want %%P1 of 8 bytes", v)
	}
	if a := b[3].Args; len(a) != 2 || a[1].Kind != KindProto {
		t.Errorf("call = %+v, want 2 operands, the second a prototype", a)
	}
}

// Many small objects together may not use more memory than one of their total
// size.
func TestObjectsShareOneBudget(t *testing.T) {
	var sources []Source
	for range 64 { // each requires 4.7 MB of registers, which it may have alone
		sources = append(sources, Source{Name: "o", Text: head + ".entry k() { .reg .b32 %r<65000>; ret; }"})
	}
	if _, err := ParseObjects(sources[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseObjects(sources); err == nil || !strings.Contains(err.Error(), "module too large") {
		t.Errorf("ParseObjects of 64 objects that require 4.7 MB each = %v, want module too large", err)
	}
}
