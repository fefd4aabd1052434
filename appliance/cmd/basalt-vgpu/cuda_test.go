package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
)

// cudaGuest boots a guest on a node with a soft GPU. The guest has the CUDA library and
// programs of build/guest under /guest, and the files more.
func cudaGuest(t testing.TB, more map[string]string, run string) (*node, *testguest.Guest) {
	t.Helper()
	library, _ := built.Guest(t)
	probe := testguest.Compile(t, filepath.Join("..", "..", "..", "gpu", "vhostgpu", "testguest", "cudaprobe", "cudaprobe.c"), "-ldl")
	files := map[string]string{"/cudaprobe": probe}
	testguest.Libraries(t, files, probe)
	testguest.Libraries(t, files, filepath.Join(library, "lib/libcuda.so.1"))
	for _, f := range []string{"lib/libcuda.so.1", "lib/libnvidia-ml.so.1", "bin/nvidia-smi", "bin/cuda-info", "demo/vecadd", "demo/matmul"} {
		files["/guest/"+f] = filepath.Join(library, f)
	}
	maps.Copy(files, more)
	n := startNode(t, built.Program(t, "appliance/cmd/basalt-worker"))
	return n, testguest.Boot(t, testguest.Options{VGPU: n.socket, Files: files, MemoryMiB: 768,
		Run: "export LD_LIBRARY_PATH=/guest/lib\n" + run})
}

// program is a program that must exit with 0 in the guest and print want.
type program struct{ name, command, want string }

// programs returns programs as a tenant uses them.
func programs() []program {
	return []program{
		{"add", "/cudaprobe add", "cudaprobe: Basalt Test, 256 MiB"},
		{"pinned", "/cudaprobe pinned", "cudaprobe: pinned ok"},
		{"mapped", "/cudaprobe mapped", "cudaprobe: mapped ok"},
		{"vecadd", "/guest/demo/vecadd", "OK"},
		{"matmul", "/guest/demo/matmul", "OK"},
		{"nvidia-smi", "/guest/bin/nvidia-smi", "Basalt Test"},
	}
}

// libraryTests returns the programs of gpu/guest/test: all functions of the API with valid and
// invalid arguments, and the recorded call sequences. They run on the host there, and through
// the VM's device here.
func libraryTests(t *testing.T) (files map[string]string, all []program) {
	t.Helper()
	library, tests := built.Guest(t)
	files = map[string]string{}
	for _, f := range []string{"api", "replay", "nvml-names", "nvml-every"} {
		files["/guest/"+f] = filepath.Join(tests, f)
	}
	list := exec.Command(files["/guest/api"], "list")
	list.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(library, "lib"))
	names, err := list.Output()
	if err != nil {
		t.Fatalf("api list: %v", err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if reason := leftOut(name); reason != "" {
			t.Logf("test %s is skipped: %s", name, reason)
			continue
		}
		all = append(all, program{name, "/guest/api " + name, ""})
	}
	all = append(all, program{"nvml-names", "/guest/nvml-names /guest/lib/libnvidia-ml.so.1 /guest/lib/libcuda.so.1", "ok"},
		program{"nvml-every", "/guest/nvml-every", ""})
	sequences, err := filepath.Glob(filepath.Join("..", "..", "..", "gpu", "guest", "testdata", "sequences", "*.txt"))
	if err != nil || len(sequences) == 0 {
		t.Fatalf("sequences: %v, %v", sequences, err)
	}
	for _, path := range sequences {
		f := filepath.Base(path)
		files["/guest/sequences/"+f] = path
		if f != "requests.txt" {
			all = append(all, program{"replay-" + strings.TrimSuffix(f, ".txt"),
				"/guest/replay /guest/sequences/requests.txt /guest/sequences/" + f, "calls as recorded"})
		}
	}
	return files, all
}

// runtimeTests returns programs that use our libcudart: some compiled by clang, which cover all
// of its functions together, and one that calls each function with invalid arguments.
func runtimeTests(t *testing.T, files map[string]string) (all []program) {
	t.Helper()
	library, tests := built.Guest(t)
	files["/guest/lib/libcudart.so.12"] = filepath.Join(library, "lib", "libcudart.so.12")
	files["/guest/bad"] = filepath.Join(tests, "bad-12")
	for _, name := range []string{"graphs", "nodes", "devices"} {
		path := built.CUDA(t, name)
		files["/guest/"+name] = path
		testguest.Libraries(t, files, path)
		all = append(all, program{name, "/guest/" + name, name + ": OK"})
	}
	blas := filepath.Join(tests, "blas", "test", "blas")
	files["/guest/blas"] = blas
	testguest.Libraries(t, files, blas)
	for _, name := range []string{"libcublas.so.12", "libcublasLt.so.12"} {
		files["/guest/lib/"+name] = filepath.Join(library, "lib", "cublas", name)
	}
	return append(all, program{"bad", "/guest/bad", "bad: 12: OK"}, program{"blas", "/guest/blas handles capture threads", "blas: OK"})
}

// leftOut returns why a test of gpu/guest/test is not run in this VM, or "".
func leftOut(name string) string {
	switch {
	case name == "host_again":
		return "a region of 3 GiB is larger than a VM may have"
	case name == "host_registered_mapped" || name == "host_registered_refused":
		return "in a VM a registration cannot share a page with one that has a device address, as they do: the kernel cannot protect a region's pages from writes"
	case layer.Long():
	case name == "thread_churn":
		return "long: 6,400 threads take a quarter of a minute in software emulation, and thread_storm shows the same path"
	case name == "module_managed":
		return "long: 3,000 modules take half a minute in software emulation, and library_managed shows the same path"
	case name == "stuck_copies":
		return "long: it writes 64 MiB word by word, and full_streams shows the same path"
	}
	return ""
}

// TestCUDA runs CUDA programs in a VM with a virtual GPU, and all tests of the guest's library.
func TestCUDA(t *testing.T) {
	files, tests := libraryTests(t)
	all := append(append(programs(), tests...), runtimeTests(t, files)...)
	run := "mkdir -p /tmp\necho 1 >/proc/sys/vm/overcommit_memory\n" // window_limited allocates more memory than exists
	for _, p := range all {
		run += p.command + "; echo \"exit of " + p.name + ": $?\"\n"
	}
	n, g := cudaGuest(t, files, run)
	for _, p := range all {
		if out := g.Expect(`(?s).*?exit of ` + p.name + `: \d+`); !strings.HasSuffix(out, ": 0") || !strings.Contains(out, p.want) {
			t.Errorf("output of %s = %q, want exit status 0 and %q", p.command, out, p.want)
		}
	}
	n.until("gpud has no processes", func() bool { return len(n.state().Processes) == 0 })
	u := n.state()
	if u.VRAMUsed != 0 || u.Usage.Launches < 20 || u.Usage.BytesToDevice < 8<<20 || u.Usage.GPUNanos == 0 {
		t.Errorf("vGPU after the programs = %+v, want no VRAM in use, and launches, copies and GPU time", u)
	}
}

// TestCUDAKills checks what a tenant's program observes when processes that it depends on are
// killed.
func TestCUDAKills(t *testing.T) {
	n, g := cudaGuest(t, nil, `
/cudaprobe loop
/cudaprobe loop & pid=$!
read go
kill -9 $pid
echo killed
read next
/cudaprobe loop
echo survived
sleep 1000`)
	processes := func(want int) func() bool { return func() bool { return len(n.state().Processes) == want } }

	// The worker is killed: the program gets an error.
	g.Expect("cudaprobe: looping")
	n.until("the process is registered", processes(1))
	n.killWorkers()
	t.Log(g.Expect(`cudaprobe: error \d+ from .*`))

	// The program is killed: its memory is freed.
	g.Expect("cudaprobe: looping")
	n.until("the process is registered", processes(1))
	g.Type("go")
	g.Expect("killed")
	n.until("the process is no longer registered", processes(0))
	n.until("the memory is freed", func() bool { return n.state().VRAMUsed == 0 })
	g.Type("next") // otherwise the next process may be registered before the last one is seen to be removed

	// An upgrade meanwhile has no effect. When basalt-vgpu is killed, the program gets an error
	// at once, long before it would miss the heartbeat, and the guest continues.
	g.Expect("cudaprobe: looping")
	_ = n.vgpu.Process.Signal(unix.SIGUSR2)
	n.until("the process is registered", processes(1))
	killed := patience.Start()
	_ = n.vgpu.Process.Kill()
	t.Log(g.Expect(`cudaprobe: error 46 from .*`))
	if killed.Over(abi.HeartbeatDeadMillis / 2 * time.Millisecond) {
		t.Errorf("the program got its error after %v, want less than half of %d ms", killed.Given(), abi.HeartbeatDeadMillis)
	}
	g.Expect("survived")
	n.until("the process is no longer registered", processes(0))
}
