package soft_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/device"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// FuzzModuleLoad: whatever a tenant loads is a module or an error with a log.
func FuzzModuleLoad(f *testing.F) {
	for _, file := range []string{"basic", "flow", "block", "print"} {
		src := kernelFile(f, file)
		parts := strings.Split(src, ".visible .entry")
		for _, p := range parts[1:] {
			f.Add([]byte(ptxHead + ".visible .entry" + p))
		}
	}
	f.Add([]byte(kernelFile(f, "print")))
	f.Add([]byte("\x50\xed\x55\xba\x01\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	calls := ptxHead + threeFunctions + `.extern .func (.param .u64 r) malloc (.param .u64 n);` + callKernel(
		`{ .param .u64 n, r; call (r), malloc, (n); } mov.u64 %d2, triple; { .param .u32 a, b; call (b), %d2, (a), P; } P: .callprototype _;`)
	f.Add([]byte(calls))
	f.Add([]byte(ptxHead + `.func (.reg .u32 %r) f (.reg .u32 %n) { call (%r), f, (%n); ret; }` + callKernel(`call (%out), f, (%tid);`)))
	f.Add((&abi.LinkImage{Objects: []abi.LinkObject{
		{Type: 1, Name: "calls", Image: []byte(calls)}, {Type: 1, Name: "malloc", Image: []byte(ptxHead + ".weak .func (.param .u64 r) malloc (.param .u64 n) { ret; }")},
	}}).Append(nil))
	d, err := device.New(device.Options{VRAM: 64 << 20})
	if err != nil {
		f.Fatal(err)
	}
	c, err := d.NewContext(0, nil, testWindow)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := d.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, image []byte) {
		m, _, info, err := c.ModuleLoad(image, worker.ModuleOptions{})
		if err != nil {
			if info.ErrorLog == "" && !strings.Contains(err.Error(), "MEMORY") {
				t.Errorf("%v without a log", err)
			}
			return
		}
		if err := c.ModuleUnload(m); err != nil {
			t.Error(err)
		}
	})
}
