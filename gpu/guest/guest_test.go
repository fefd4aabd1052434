package guest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// The C tests run against real processes: basalt-gpud --standalone with a soft
// GPU, and the workers that it starts. TestMain builds the C programs once.

// apiPatience is the time limit of one guest program.
const apiPatience = 2 * time.Minute

var outDir string // the folder with the built C code: lib, bin, demo

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if packed != "" {
		outDir = packed
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "basalt-guest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	outDir = filepath.Join(dir, "guest")
	if out, err := exec.Command("make", "--no-print-directory", "BUILD="+dir, "testprograms").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "make testprograms: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// gpud is a running basalt-gpud --standalone.
type gpud struct {
	socket string
	cmd    *exec.Cmd
}

// startGPUD starts a gpud with a soft GPU of 256 MiB, and stops it when the test ends.
func startGPUD(t *testing.T) *gpud {
	t.Helper()
	return startGPUDWith(t, "--soft-gpu", "vram=256MiB")
}

// startGPUDWith starts a gpud with the given options for its GPU.
func startGPUDWith(t *testing.T, options ...string) *gpud {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real workers: not run with -short")
	}
	programs := built.Programs(t, "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker")
	return startProgram(t, filepath.Join(programs, "basalt-gpud"), append(options, "--no-nvidia")...)
}

// startProgram starts the given basalt-gpud, waits until it listens, and stops it when the
// test ends.
func startProgram(t *testing.T, program string, options ...string) *gpud {
	t.Helper()
	dir, err := os.MkdirTemp("", "gpud") // t.TempDir may be too long for the path of a unix socket
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // workers may run as another user
		t.Fatal(err)
	}
	g := &gpud{socket: filepath.Join(dir, "s")}
	g.cmd = exec.Command(program, append(options, "--standalone", "--socket", g.socket, "--state", filepath.Join(dir, "state"))...)
	var log bytes.Buffer
	g.cmd.Stdout, g.cmd.Stderr = &log, &log
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.cmd.Process.Signal(os.Interrupt)
		_ = g.cmd.Wait()
		_ = os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("gpud:\n%s", log.String())
		}
	})
	patience.Until(t, 30*time.Second, "gpud listens", func() bool {
		c, err := net.Dial("unix", g.socket)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return g
}

// command returns the command of a guest program that uses g's vGPU. If g is nil, there is
// no vGPU.
func (g *gpud) command(t *testing.T, path string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := patience.Context(context.Background(), apiPatience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	where := "unix:/nonexistent/basalt"
	if g != nil {
		where = "unix:" + g.socket
	}
	cmd.Env = append(os.Environ(), "BASALT_GPU="+where, "BASALT_VERBOSE=1")
	if packed != "" { // the libraries are not in the folder that they were built in
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+made("lib")+":"+made("lib", "cublas"))
	}
	return cmd
}

// run runs a guest program on g's vGPU and returns its output. The test fails if the
// program does.
func (g *gpud) run(t *testing.T, path string, args ...string) string {
	t.Helper()
	out, err := g.command(t, path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
	}
	return string(out)
}

// made returns the path of a file that the guest tools consist of.
func made(parts ...string) string { return filepath.Join(append([]string{outDir}, parts...)...) }

// object returns the path of a test program or another intermediate file of the build.
func object(name string) string {
	return filepath.Join(filepath.Dir(outDir), "obj", "guest", name)
}

func TestUnit(t *testing.T) {
	if out, err := exec.Command(object("unit")).CombinedOutput(); err != nil {
		t.Fatalf("unit: %v\n%s", err, out)
	}
}

func TestDemos(t *testing.T) {
	g := startGPUD(t)
	if got, want := g.run(t, made("demo", "vecadd")), "vecadd: 1048576 elements, max error 0, OK\n"; got != want {
		t.Errorf("vecadd printed %q, want %q", got, want)
	}
	if got := g.run(t, made("demo", "matmul"), "100"); !strings.HasPrefix(got, "matmul: 100 x 100, ") || !strings.HasSuffix(got, ", OK\n") {
		t.Errorf("matmul printed %q, want %q at its start and %q at its end", got, "matmul: 100 x 100, ", ", OK\n")
	}
	if got := g.run(t, made("bin", "cuda-info")); !strings.Contains(got, "memory: 256 MiB") {
		t.Errorf("cuda-info printed %q, want %q in it", got, "memory: 256 MiB")
	}
}

// The authenticity query of the vendor's runtime is answered if the operator has enabled
// that. If not, the library prints the reason for the program's user.
func TestInterop(t *testing.T) {
	g := startGPUD(t)
	off, err := g.command(t, object("api"), "interop").CombinedOutput()
	if err != nil || strings.Count(string(off), "interop is off on this host") != 1 {
		t.Errorf("interop with interop disabled: %v, want success and the message once that it is off; it printed\n%s", err, off)
	}
	g = startGPUDWith(t, "--soft-gpu", "vram=256MiB", "--interop")
	on := g.command(t, object("api"), "interop")
	on.Env = append(on.Env, "INTEROP=on")
	if out, err := on.CombinedOutput(); err != nil {
		t.Errorf("interop with interop enabled: %v\n%s", err, out)
	}
	// Guest tools without libbasalt-interop: an old disc, or somebody has deleted the file.
	alone := t.TempDir()
	b, err := os.ReadFile(made("lib", "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(alone, "libcuda.so.1"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	without := g.command(t, object("api"), "interop")
	without.Env = append(without.Env, "LD_PRELOAD="+filepath.Join(alone, "libcuda.so.1"))
	if out, err := without.CombinedOutput(); err != nil || !strings.Contains(string(out), "interop is on, but "+alone) {
		t.Errorf("interop without the library: %v, want success and %q; it printed\n%s", err, "interop is on, but "+alone, out)
	}
}

func TestAPI(t *testing.T) {
	g := startGPUD(t)
	for name := range strings.FieldsSeq(g.run(t, object("api"), "list")) {
		t.Run(name, func(t *testing.T) { g.run(t, object("api"), name) })
	}
}

func TestClusters(t *testing.T) {
	g := startGPUDWith(t, "--soft-gpu", "vram=256MiB,cc=8.6")
	g.run(t, object("api"), "clusters")
}

// TestReplay makes the driver calls that were recorded from NVIDIA's libraries and the
// programs that use them (testdata/sequences).
func TestReplay(t *testing.T) {
	g := startGPUD(t)
	requests, sequences := sequenceFiles(t)
	for _, f := range sequences {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) { g.run(t, object("replay"), requests, f) })
	}
}

// sequenceFiles returns the path of the list of functions that the runtime looks up, and
// the paths of the recordings.
func sequenceFiles(t *testing.T) (requests string, sequences []string) {
	t.Helper()
	all, err := filepath.Glob("testdata/sequences/*.txt")
	if err != nil || len(all) < 11 {
		t.Fatalf("testdata/sequences has %d files, want at least 11: %v, %v", len(all), all, err)
	}
	requests = "testdata/sequences/requests.txt"
	return requests, slices.DeleteFunc(all, func(f string) bool { return f == requests })
}

// A null GPU reports by its name that it is one, executes every call that does not depend
// on the results of kernels, and computes nothing.
func TestNullGPU(t *testing.T) {
	g := startGPUDWith(t, "--null-gpu", "name=null0,vram=256MiB")
	if got := g.run(t, made("bin", "nvidia-smi")); !strings.Contains(got, "  Null GPU, computes nothing ") {
		t.Errorf("nvidia-smi printed %s, want %q in it", got, "  Null GPU, computes nothing ")
	}
	if got := g.run(t, made("bin", "cuda-info")); !strings.Contains(got, "name: Null GPU, computes nothing") || !strings.Contains(got, "memory: 256 MiB") {
		t.Errorf("cuda-info printed %q, want %q and %q in it", got, "name: Null GPU, computes nothing", "memory: 256 MiB")
	}
	for _, name := range []string{"bad_handles", "out_of_memory", "attributes", "proc_address", "occupancy", "context_stacks",
		"after_context", "fork_exec", "leave", "advice", "host_limits", "graph_edges", "graph_bad", "capture_edges", "capture_modes"} {
		t.Run(name, func(t *testing.T) { g.run(t, object("api"), name) })
	}
	out, err := g.command(t, made("demo", "vecadd")).CombinedOutput()
	if err == nil || !strings.HasSuffix(string(out), ", WRONG\n") {
		t.Errorf("vecadd on a null GPU: %v, %q; want a failure and %q at the end", err, out, ", WRONG\n")
	}
	// The benchmark with few launches: all its calls succeed, and each row has a sample.
	got := g.run(t, object("bench"), "path", "1", "8000")
	for _, row := range []string{"EnqueueCPU/threads=1\t8000\t", "EnqueueCPU/threads=8\t8000\t", "LaunchSync\t", "GraphLaunchCPU/worker=asleep\t100\t", "AllocFree\t",
		"Copy/HtoD/pageable/size=16MiB\t", "Copy/DtoH/pinned/size=64KiB\t", "ModuleLoad\t1\t"} {
		if !strings.Contains(got, "BenchmarkPath"+row) {
			t.Errorf("the benchmark printed no sample of %q, want one; it printed\n%s", row, got)
		}
	}
	patience.Until(t, 30*time.Second, "all memory is free", func() bool {
		return g.run(t, made("bin", "nvidia-smi"), "--query-gpu=memory.used", "--format=csv,noheader,nounits") == "0\n"
	})
}

// The library prints the reason why it has no address window.
func TestNoWindowSaysWhy(t *testing.T) {
	g := startGPUD(t)
	for name, want := range map[string]string{
		"window_all_taken": "address window: none of 8 address ranges can be reserved in this process",
		"window_limited":   "address window: RLIMIT_AS of 1073741824 bytes leaves no room for it, at least 2147483648 are needed",
	} {
		if out := g.run(t, object("api"), name); !strings.Contains(out, want) {
			t.Errorf("%s printed %q, want %q in it", name, out, want)
		}
	}
}

// A small arena makes copies slower, but not wrong.
func TestSmallArena(t *testing.T) {
	g := startGPUD(t)
	for _, name := range []string{"threads", "copies"} {
		cmd := g.command(t, object("api"), name)
		cmd.Env = append(cmd.Env, "BASALT_ARENA=1M")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s with BASALT_ARENA=1M: %v\n%s", name, err, out)
		}
	}
}

// If the worker is killed or stopped, the calls of its guest process fail within seconds.
func TestDeadWorker(t *testing.T) {
	for name, signal := range map[string]os.Signal{"dead_worker": syscall.SIGKILL, "stopped_worker": syscall.SIGSTOP,
		"dead_worker_full": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGPUD(t)
			cmd := g.command(t, object("api"), name)
			stdin, _ := cmd.StdinPipe()
			stdout, _ := cmd.StdoutPipe()
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(stdout, make([]byte, 6)); err != nil {
				t.Fatalf("read the first 6 bytes of %s: %v: %s", name, err, stderr.String())
			}
			worker := g.worker(t)
			if err := worker.Signal(signal); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = worker.Kill() }) // SIGKILL alone ends a stopped process
			if _, err := stdin.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%s after its worker got signal %v: %v: %s", name, signal, err, stderr.String())
			}
		})
	}
}

// When a program is killed, its worker ends, whatever the program was doing.
func TestKilledProgram(t *testing.T) {
	g := startGPUDWith(t, "--null-gpu", "name=null0,vram=256MiB")
	const rows = 24 // rows of one round of the benchmark; each starts another kind of work
	for after := 0; after <= rows; after += 2 {
		cmd := g.command(t, object("bench"), "path", "1000", "4000")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines, row := bufio.NewScanner(stdout), 0; row < after; row++ {
			if !lines.Scan() {
				t.Fatalf("the benchmark's program ended after %d rows, want %d", row, after)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		patience.Until(t, 30*time.Second, fmt.Sprintf("the worker of a program that was killed after %d rows ends", after), func() bool {
			return len(children(t, g.cmd.Process.Pid)) == 0
		})
	}
}

// Programs report an error if the host accepts the connection and never answers, and if it
// closes the connection at once.
func TestSilentHost(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the timeout of the heartbeat: not run with -short")
	}
	for name, hold := range map[string]bool{"silent": true, "closes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "silent") // t.TempDir may be too long for the path of a unix socket
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			g := &gpud{socket: filepath.Join(dir, "s")}
			l, err := net.Listen("unix", g.socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if hold {
						defer c.Close()
					} else {
						_ = c.Close()
					}
				}
			}()
			for _, program := range []string{"cuda-info", "nvidia-smi"} {
				const want = "the host's side of the vGPU ended or did not answer within 10 s (carrier unix)"
				out, err := g.command(t, made("bin", program)).CombinedOutput()
				if err == nil || !strings.Contains(string(out), want) {
					t.Errorf("%s: %v, %s; want a failure and %q", program, err, out, want)
				}
			}
		})
	}
}

// worker returns the only worker of g. It waits until there is one: a worker of the
// connection by which startProgram tested the socket may still be ending.
func (g *gpud) worker(t *testing.T) *os.Process {
	t.Helper()
	var all []*os.Process
	patience.Until(t, 30*time.Second, "gpud has one worker", func() bool {
		all = children(t, g.pid(t))
		return len(all) == 1
	})
	return all[0]
}

// pid returns the process of g, which another package may have started.
func (g *gpud) pid(t *testing.T) int {
	t.Helper()
	if g.cmd != nil {
		return g.cmd.Process.Pid
	}
	return listener(t, g.socket)
}

// children returns the child processes of parent that run basalt-worker.
func children(t *testing.T, parent int) (all []*os.Process) {
	t.Helper()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			pid, _ := strconv.Atoi(s)
			if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(exe) == "basalt-worker" {
				p, err := os.FindProcess(pid)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, p)
			}
		}
	}
	return all
}

func TestNoDevice(t *testing.T) {
	var none *gpud
	out, err := none.command(t, made("bin", "cuda-info")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "CUDA_ERROR_NO_DEVICE (100)") {
		t.Errorf("cuda-info without a vGPU: %v, %s; want a failure and %q", err, out, "CUDA_ERROR_NO_DEVICE (100)")
	}
	out, err = none.command(t, made("bin", "nvidia-smi")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no Basalt vGPU was found") {
		t.Errorf("nvidia-smi without a vGPU: %v, %s; want a failure and %q", err, out, "no Basalt vGPU was found")
	}
}

func TestNVML(t *testing.T) {
	g := startGPUD(t)
	g.run(t, object("nvml-names"), made("lib", "libnvidia-ml.so.1"), made("lib", "libcuda.so.1"))
	g.run(t, object("nvml-every"))
}

// A program that exits while work is running leaves neither allocated memory nor a worker.
func TestLeave(t *testing.T) {
	g := startGPUD(t)
	g.run(t, object("api"), "leave")
	patience.Until(t, 30*time.Second, "its worker ends", func() bool { return len(children(t, g.cmd.Process.Pid)) == 0 })
	if got := g.run(t, made("bin", "nvidia-smi"), "--query-gpu=memory.used", "--format=csv,noheader,nounits"); got != "0\n" {
		t.Errorf("used memory after the program's end = %q MiB, want 0", got)
	}
}

// TestTable compares nvidia-smi's table with testdata, and checks that all its lines have
// 91 columns.
func TestTable(t *testing.T) {
	for _, name := range []string{"idle", "full"} {
		got, err := exec.Command(object("smi"), name).Output()
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "smi-"+name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("table %s: got\n%swant\n%s", name, got, want)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(got)), "\n") {
			if i > 0 && line != "" && len(line) != 91 {
				t.Errorf("table %s: line %d has %d columns, want 91: %s", name, i, len(line), line)
			}
		}
	}
}

// The libraries export the functions of their API and nothing else.
func TestExports(t *testing.T) {
	for lib, prefix := range map[string]string{"libcuda.so.1": "cu", "libnvidia-ml.so.1": "nvml"} {
		out, err := exec.Command("nm", "-D", "--defined-only", made("lib", lib)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); !strings.HasPrefix(f[len(f)-1], prefix) {
				t.Errorf("%s exports %s, want only names that begin with %s", lib, f[len(f)-1], prefix)
			}
		}
	}
}
