package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
	"github.com/basalt-gpu/basalt/installer/dev/built"
)

// cudaGuest boots a guest with the CUDA library and programs of build/guest
// under /guest, on a node with a soft GPU.
func cudaGuest(t *testing.T, run string) (*node, *testguest.Guest) {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a virtual machine")
	}
	outputs := filepath.Join(testguest.BuildDir(t), "guest")
	if _, err := os.Stat(filepath.Join(outputs, "lib", "libcuda.so.1")); err != nil {
		t.Skip("build/guest/lib/libcuda.so.1 is missing: run make guest")
	}
	probe := testguest.Compile(t, filepath.Join("..", "..", "..", "gpu", "vhostgpu", "testguest", "cudaprobe", "cudaprobe.c"), "-ldl")
	files := map[string]string{"/cudaprobe": probe}
	testguest.Libraries(t, files, probe)
	for _, f := range []string{"lib/libcuda.so.1", "lib/libnvidia-ml.so.1", "bin/nvidia-smi", "bin/cuda-info", "demo/vecadd", "demo/matmul"} {
		if path := filepath.Join(outputs, f); exists(path) {
			files["/guest/"+f] = path
		}
	}
	n := startNode(t, built.Program(t, "appliance/cmd/basalt-worker"))
	return n, testguest.Boot(t, testguest.Options{VGPU: n.socket, Files: files, MemoryMiB: 512,
		Run: "export LD_LIBRARY_PATH=/guest/lib\n" + run})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The main job: CUDA programs in a VM, on a virtual GPU.
func TestCUDA(t *testing.T) {
	programs := []struct{ name, command, want string }{
		{"add", "/cudaprobe add", "cudaprobe: Basalt Test, 256 MiB"},
		{"pinned", "/cudaprobe pinned", "cudaprobe: pinned ok"},
		{"mapped", "/cudaprobe mapped", "cudaprobe: mapped ok"},
		{"vecadd", "/guest/demo/vecadd", "OK"},
		{"matmul", "/guest/demo/matmul", "OK"},
		{"nvidia-smi", "/guest/bin/nvidia-smi", "Basalt Test"},
	}
	if !exists(filepath.Join(testguest.BuildDir(t), "guest/bin/nvidia-smi")) {
		t.Log("build/guest/bin/nvidia-smi is missing, so it is not tried")
		programs = programs[:len(programs)-1]
	}
	run := ""
	for _, p := range programs {
		run += p.command + "; echo \"exit of " + p.name + ": $?\"\n"
	}
	n, g := cudaGuest(t, run)
	for _, p := range programs {
		if out := g.Expect(`(?s).*?exit of ` + p.name + `: \d+`); !strings.HasSuffix(out, ": 0") || !strings.Contains(out, p.want) {
			t.Errorf("%s printed %q", p.command, out)
		}
	}
	n.until("gpud forgot the processes", func() bool { return len(n.state().Processes) == 0 })
	u := n.state()
	if u.VRAMUsed != 0 || u.Usage.Launches < 20 || u.Usage.BytesToDevice < 8<<20 || u.Usage.GPUNanos == 0 {
		t.Errorf("after the programs: %+v", u)
	}
}

// What a tenant's program sees when things die under it.
func TestCUDAKills(t *testing.T) {
	n, g := cudaGuest(t, `
/cudaprobe loop
/cudaprobe loop & pid=$!
read go
kill -9 $pid
echo killed
/cudaprobe loop
echo survived
sleep 1000`)
	processes := func(want int) func() bool { return func() bool { return len(n.state().Processes) == want } }

	// Its worker: an error.
	g.Expect("cudaprobe: looping")
	n.until("process known", processes(1))
	n.killWorkers()
	t.Log(g.Expect(`cudaprobe: error \d+ from .*`))

	// Itself: its memory is free.
	g.Expect("cudaprobe: looping")
	n.until("process known", processes(1))
	g.Type("go")
	g.Expect("killed")
	n.until("process forgotten", processes(0))
	n.until("memory freed", func() bool { return n.state().VRAMUsed == 0 })

	// An upgrade in between goes unnoticed; basalt-vgpu's death is an error,
	// and the guest lives on.
	g.Expect("cudaprobe: looping")
	_ = n.vgpu.Process.Signal(unix.SIGUSR2)
	n.until("process known", processes(1))
	_ = n.vgpu.Process.Kill()
	t.Log(g.Expect(`cudaprobe: error \d+ from .*`))
	g.Expect("survived")
	n.until("process forgotten", processes(0))
}
