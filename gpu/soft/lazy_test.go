package soft_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestLazyFunctions checks that kernels of a large module are compiled at their first
// use, if the loader can query the attributes later.
func TestLazyFunctions(t *testing.T) {
	large := strings.Repeat("// a library's module is large\n", 10_000) + ".version 8.4\n.target sm_90\n.address_size 64\n" + `.entry bad() { nothing.u32 1; ret; }
		.entry good(.param .u64 p) .maxntid 64 { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.u32 [%p], 7; ret; }`
	d, err := device.New(device.Options{VRAM: 64 << 20, SMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		t.Fatal(err)
	}
	for _, lazy := range []bool{false, true} {
		m, functions, info, err := c.ModuleLoad([]byte(large), worker.ModuleOptions{Lazy: lazy})
		if err != nil || len(functions) != 2 {
			t.Fatalf("load returned %d functions, error %v; want 2 and no error", len(functions), err)
		}
		if known := info.Functions[1].Attributes[0] != 0; known == lazy || (info.Functions[0].Refused != "") == lazy || len(info.Functions[1].Params) != 1 {
			t.Errorf("load with lazy = %v: functions %+v, want their attributes only if not lazy", lazy, info.Functions)
		}
		bad, err := c.(worker.LazyLoader).FunctionInfo(functions[0])
		if err != nil || !strings.Contains(bad.Refused, "nothing.u32 1") {
			t.Errorf("FunctionInfo of bad = %+v, error %v; want it refused with its instruction", bad, err)
		}
		if err := c.Launch(nil, functions[0], worker.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, nil); !errors.Is(err, abi.ErrNoBinaryForGPU) {
			t.Errorf("launch of bad: error %v, want %v", err, abi.ErrNoBinaryForGPU)
		}
		good, err := c.(worker.LazyLoader).FunctionInfo(functions[1])
		if err != nil || good.Attributes[0] != 64 || good.Name != "good" {
			t.Errorf("FunctionInfo of good = %+v, error %v; want name good and at most 64 threads", good, err)
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Error(err)
		}
	}
}
