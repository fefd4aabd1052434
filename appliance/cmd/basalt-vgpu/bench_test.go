package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
)

// BenchmarkPathInVM prints the samples of gpu/guest/bench's path in a VM with a null GPU, for
// installer/dev/bench-gpu-path.sh. The baselines are the VM's own, because others are not
// comparable under software emulation.
func BenchmarkPathInVM(b *testing.B) {
	library, tests := built.Guest(b)
	bench := filepath.Join(tests, "bench")
	files := map[string]string{"/bench": bench, "/guest/lib/libcuda.so.1": filepath.Join(library, "lib", "libcuda.so.1")}
	testguest.Libraries(b, files, bench)
	testguest.Libraries(b, files, filepath.Join(library, "lib/libcuda.so.1"))
	for b.Loop() {
		n := startNodeOn(b, built.Program(b, "appliance/cmd/basalt-worker"), "--null-gpu", "name=null0,vram=1GiB")
		g := testguest.Boot(b, testguest.Options{VGPU: n.socket, Files: files, MemoryMiB: 768,
			Run: "export LD_LIBRARY_PATH=/guest/lib\n/bench path 3 20000\necho \"exit of bench: $?\""})
		var out string
		for !strings.Contains(out, "exit of bench: ") {
			out = g.Expect(`[^\n]*\n`) // one row at a time, so that each has the limit of a whole wait
			if row, ok := strings.CutPrefix(strings.TrimSpace(out), "BenchmarkPath"); ok {
				fmt.Println("BenchmarkVMPath" + row)
			}
		}
		if !strings.Contains(out, "exit of bench: 0") {
			b.Fatalf("exit of the benchmark's program in the VM: %s, want 0", out)
		}
	}
}
