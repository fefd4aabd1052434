package compile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// large is a module of some megabytes with kernels k0 to k9, which add their number.
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

// A large module costs little until its kernels are used, and is what it is when it
// is compiled at once.
func TestLazyModule(t *testing.T) {
	text := large()
	if len(text) < lazyBytes {
		t.Fatalf("%d bytes of PTX are not many", len(text))
	}
	m, err := DefaultCapability.ParseLazy(makeFatbin([]any{1, 61, 0, []byte(text + "\x00"), 0}, []any{2, 61, 0, make([]byte, 32<<20), 0}))
	if err != nil || !m.Lazy() {
		t.Fatalf("lazy: %v, %v", m != nil && m.Lazy(), err)
	}
	if err := m.Link(ir.NewSpaces(checkedWindow), &checked{next: checkedWindow.Base}); err != nil {
		t.Fatal(err)
	}
	list := m.Entries()
	m.Compile(&list[3])
	m.Compile(&list[10])
	if list[3].Err != nil || len(list[3].Program.Blocks) == 0 || len(list[3].Params) != 1 {
		t.Errorf("k3: %v", list[3].Err)
	}
	if list[10].Err == nil || !strings.Contains(list[10].Err.Error(), "nothing.u32 1") {
		t.Errorf("bad: %v, want its instruction", list[10].Err)
	}
	list[3].Program = nil
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if most := uint64(2*len(text) + 8<<20); stats.HeapAlloc > most {
		t.Errorf("%d bytes are in use with a module of %d bytes loaded, want %d at most", stats.HeapAlloc, len(text), most)
	}
	runtime.KeepAlive(m)
}

// One of the old kind is not lazy, and neither are several that are linked.
func TestSmallModulesAreCompiledAtOnce(t *testing.T) {
	m, err := DefaultCapability.ParseLazy([]byte(head + ".entry k() { ret; }"))
	if err != nil || m.Lazy() {
		t.Errorf("lazy: %v, %v", m != nil && m.Lazy(), err)
	}
}

// Check says the same of a large module's kernels as of a small one's.
func TestCheckOfALargeModule(t *testing.T) {
	list, err := DefaultCapability.Check([]byte(large()))
	if err != nil || len(list) != 11 {
		t.Fatalf("%d kernels, %v; want 11", len(list), err)
	}
	for _, k := range list {
		if (k.Err != nil) != (k.Name == "bad") {
			t.Errorf("kernel %s: %v", k.Name, k.Err)
		}
	}
}
