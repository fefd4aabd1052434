package ptx

import (
	"strings"
	"testing"
)

// A module that is parsed function by function equals one that is parsed at once,
// however often it is opened, and nothing else is kept.
func TestLazy(t *testing.T) {
	src := head + `.global .u32 g = 7;
		.func (.param .b32 r) f(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; st.param.b32 [r], %x; ret; }
		.entry k(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u64 [g], %p; bra L; L: ret; }
		.entry declares() { .global .align 8 .b64 own[2]; .reg .b64 %p; mov.u64 %p, own; ret; }
		.entry bad() { bra nowhere; ret; }`
	whole, err := Parse(strings.ReplaceAll(src, "bra nowhere;", ""))
	if err != nil {
		t.Fatal(err)
	}
	z, err := ParseLazy(src)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := z.Open(src)
		for i, want := range whole.Funcs {
			f := z.Module.Funcs[i]
			if f.Name != want.Name || len(f.Params) != len(want.Params) {
				t.Errorf("function %d = %s with %d parameters, want %s with %d", i, f.Name, len(f.Params), want.Name, len(want.Params))
			}
			if kept := f.Body != nil; kept != (f.Name == "declares") {
				t.Errorf("%s has its body before Read: %v", f.Name, kept)
			}
			err := r.Read(f)
			if f.Name == "bad" {
				if err == nil || !strings.Contains(err.Error(), "nowhere") {
					t.Errorf("Read(bad) = %v, want an error about its unknown register", err)
				}
				continue
			}
			if err != nil || len(f.Body) != len(want.Body) || len(f.Regs) != len(want.Regs) || len(f.Vars) != len(want.Vars) {
				t.Errorf("Read(%s) = %v: %d instructions, %d registers, %d variables; want %d, %d, %d", f.Name, err, len(f.Body), len(f.Regs), len(f.Vars), len(want.Body), len(want.Regs), len(want.Vars))
			}
			for n := range f.Body {
				if f.Body[n].Line != want.Body[n].Line || f.Body[n].Text != want.Body[n].Text {
					t.Errorf("instruction %d of %s: line %d %q, want line %d %q", n, f.Name, f.Body[n].Line, f.Body[n].Text, want.Body[n].Line, want.Body[n].Text)
				}
			}
		}
		r.Close()
	}
}
