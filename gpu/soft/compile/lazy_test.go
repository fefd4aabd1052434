package compile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// large returns a module of some megabytes with kernels k0 to k9, which add their
// number.
func large() string {
	var b strings.Builder
	b.WriteString(head + ".global .u32 g;\n.func f() { st.global.u32 [g], 1; ret; }\n")
	for i := range 10 {
		fmt.Fprintf(&b, ".entry k%d(.param .u32 n) { .reg .b32 %%r<9>; ld.param.u32 %%r1, [n]; call f;\n", i)
		for range 3000 {
			fmt.Fprintf(&b, "add.u32 %%r2, %%r1, %d;\n", i)
		}
		b.WriteString("ret; }\n")
	}
	b.WriteString(".entry bad() { nothing.u32 1; ret; }\n")
	return b.String()
}

// TestLazyModule checks that a large module needs little memory until its kernels are
// used, and that they are compiled as in a small module.
func TestLazyModule(t *testing.T) {
	text := large()
	if len(text) < lazyBytes {
		t.Fatalf("large has %d bytes of PTX, want at least %d", len(text), lazyBytes)
	}
	m, err := DefaultCapability.ParseLazy(makeFatbin([]any{1, 61, 0, []byte(text + "\x00"), 0}, []any{2, 61, 0, make([]byte, 32<<20), 0}))
	if err != nil || !m.Lazy() {
		t.Fatalf("ParseLazy of a large module: lazy = %v, error %v; want true and no error", m != nil && m.Lazy(), err)
	}
	if err := m.Link(ir.NewSpaces(checkedWindow), &checked{next: checkedWindow.Base}); err != nil {
		t.Fatal(err)
	}
	list := m.Entries()
	m.Compile(&list[3])
	m.Compile(&list[10])
	if list[3].Err != nil || len(list[3].Program.Blocks) == 0 || len(list[3].Params) != 1 {
		t.Errorf("k3: error %v, want a program and one parameter", list[3].Err)
	}
	if list[10].Err == nil || !strings.Contains(list[10].Err.Error(), "nothing.u32 1") {
		t.Errorf("bad: error %v, want one with its instruction", list[10].Err)
	}
	list[3].Program = nil
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if most := uint64(2*len(text) + 8<<20); stats.HeapAlloc > most {
		t.Errorf("heap has %d bytes with a module of %d bytes loaded, want at most %d", stats.HeapAlloc, len(text), most)
	}
	runtime.KeepAlive(m)
}

// TestSmallModulesAreCompiledAtOnce checks that a small module is not lazy.
func TestSmallModulesAreCompiledAtOnce(t *testing.T) {
	m, err := DefaultCapability.ParseLazy([]byte(head + ".entry k() { ret; }"))
	if err != nil || m.Lazy() {
		t.Errorf("ParseLazy of a small module: lazy = %v, error %v; want false and no error", m != nil && m.Lazy(), err)
	}
}

// TestCheckOfALargeModule checks that Check reports the same for a large module's
// kernels as for those of a small one.
func TestCheckOfALargeModule(t *testing.T) {
	list, err := DefaultCapability.Check([]byte(large()))
	if err != nil || len(list) != 11 {
		t.Fatalf("Check returned %d kernels, error %v; want 11", len(list), err)
	}
	for _, k := range list {
		if (k.Err != nil) != (k.Name == "bad") {
			t.Errorf("kernel %s: error %v, want one for bad only", k.Name, k.Err)
		}
	}
}
