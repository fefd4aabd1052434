package offload_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// refused maps the programs that a soft GPU does not run yet to the message that they print.
// The test fails if one of them works, so that it is removed from the table.
var refused = map[string]string{}

// printed maps the programs whose kernels print to the text that their output must contain.
var printed = map[string]string{"omp-printf": "on the device\n"}

// unoptimized lists the programs that are also compiled without optimization, because GCC's
// functions then have .local variables.
var unoptimized = []string{"acc-recursion"}

// runPatience is the time limit of each program. An idle machine needs about a second.
const runPatience = 2 * time.Minute

// compiler returns the newest installed GCC that can compile for the GPU.
func compiler(t *testing.T) string {
	t.Helper()
	for _, version := range []string{"14", "12"} { // Debian 13, Debian 12
		if _, err := exec.LookPath("x86_64-linux-gnu-accel-nvptx-none-gcc-" + version); err == nil {
			return "gcc-" + version
		}
	}
	t.Fatal("neither gcc-14-offload-nvptx nor gcc-12-offload-nvptx is installed: installer/dev/setup.sh installs one")
	return ""
}

// library builds our libcuda and returns its folder.
func library(t *testing.T, dir string) string {
	t.Helper()
	lib := filepath.Join(dir, "guest", "lib")
	out, err := exec.Command("make", "--no-print-directory", "-C", "..", "BUILD="+dir, filepath.Join(lib, "libcuda.so.1")).CombinedOutput()
	if err != nil {
		t.Fatalf("make libcuda.so.1: %v\n%s", err, out)
	}
	return lib
}

// startGPU starts a basalt-gpud with a soft GPU and returns its socket.
func startGPU(t *testing.T, dir string) string {
	t.Helper()
	socket := filepath.Join(dir, "s")
	programs := built.Programs(t, "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker")
	cmd := exec.Command(filepath.Join(programs, "basalt-gpud"), "--standalone", "--no-nvidia",
		"--soft-gpu", "vram=512MiB", "--socket", socket, "--state", filepath.Join(dir, "state"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("gpud:\n%s", log.String())
		}
	})
	patience.Until(t, 30*time.Second, "gpud listens", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	return socket
}

// compile compiles a program with the given level of optimization.
func compile(t *testing.T, gcc, level, source, program string) {
	t.Helper()
	language := "-fopenacc"
	if strings.HasPrefix(filepath.Base(source), "omp-") {
		language = "-fopenmp"
	}
	out, err := exec.Command(gcc, level, "-Wall", "-Werror", "-no-pie", language, "-foffload=nvptx-none",
		"-foffload-options=-lm -latomic", "-o", program, source, "-lm").CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", gcc, source, err, out)
	}
}

// TestPrograms runs every program. Each compares its results with those of the host, and
// fails if it did not run on the device. Without the two variables of libgomp it would run on
// the host.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real workers: not run with -short")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("Debian has GCC's offloading to nvptx for amd64 only")
	}
	sources, err := filepath.Glob("programs/*.c")
	if err != nil || len(sources) < 20 {
		t.Fatalf("folder programs has %d programs (%v), want at least 20", len(sources), err)
	}
	gcc := compiler(t)
	dir, err := os.MkdirTemp("", "offload") // t.TempDir may be too long for the path of a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	lib, socket := library(t, dir), startGPU(t, dir)
	t.Run("all", func(t *testing.T) {
		for _, source := range sources {
			name := strings.TrimSuffix(filepath.Base(source), ".c")
			levels := []string{"-O2"}
			if slices.Contains(unoptimized, name) {
				levels = append(levels, "-O0")
			}
			for _, level := range levels {
				t.Run(name+level, func(t *testing.T) {
					t.Parallel()
					program := filepath.Join(dir, name+level)
					compile(t, gcc, level, source, program)
					ctx, cancel := patience.Context(context.Background(), runPatience)
					defer cancel()
					cmd := exec.CommandContext(ctx, program)
					cmd.Env = append(os.Environ(), "ACC_DEVICE_TYPE=nvidia", "OMP_TARGET_OFFLOAD=MANDATORY",
						"LD_LIBRARY_PATH="+lib, "BASALT_GPU=unix:"+socket, "BASALT_VERBOSE=1")
					out, err := cmd.CombinedOutput()
					if err := checkResult(name, string(out), err); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// TestCheck runs basalt-ptx check on programs of GCC. It must find their PTX, link it as the
// driver does, and accept all kernels.
func TestCheck(t *testing.T) {
	checker := built.Program(t, "appliance/cmd/basalt-ptx")
	gcc, dir := compiler(t), t.TempDir()
	for _, name := range []string{"acc-saxpy", "omp-saxpy"} {
		program := filepath.Join(dir, name)
		compile(t, gcc, "-O2", filepath.Join("programs", name+".c"), program)
		out, err := exec.Command(checker, "check", program).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "runs     main$_omp_fn$0") {
			t.Errorf("basalt-ptx check %s: %v, want that main$_omp_fn$0 runs; it printed\n%s", name, err, out)
		}
	}
}

// checkResult returns an error if a program failed or printed the wrong text. A program in
// the table refused must fail with the message in the table.
func checkResult(name, out string, err error) error {
	want, isRefused := refused[name]
	switch {
	case isRefused && err == nil:
		return fmt.Errorf("%s works now: remove it from the table refused", name)
	case isRefused && !strings.Contains(out, want):
		return fmt.Errorf("%s: %w, want the refusal %q:\n%s", name, err, want, out)
	case !isRefused && err != nil:
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	case !strings.Contains(out, printed[name]):
		return fmt.Errorf("%s printed %q, want %q in it", name, out, printed[name])
	}
	return nil
}
