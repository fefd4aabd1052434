// Package nested provides a card for tests of the card's path on machines without one:
// the guest library, given to gpu/cuda as the host's libcuda, on a vGPU of a second
// basalt-gpud with a soft GPU.
//
//	program ─► guest library ─► worker (gpu/cuda) ─► guest library ─► worker (gpu/soft)
//	           Path's gpud ───────┘                  Card's gpud ───────┘
//
// Between gpu/cuda and the guest library is a strict layer (strict/), which ends a
// process that violates a documented rule of the driver API, and can make kernels take
// time.
//
// The product is not aware of it. A process uses the card because it is started with
// the guest library in its LD_LIBRARY_PATH and the card's socket in BASALT_GPU
// (Card.Env): libcuda and libnvidia-ml are found there like a vendor's.
// docs/decisions/0043-the-cards-path-nested.md describes what such a card cannot do.
package nested

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// Check is the value of BASALT_CHECK_CARD for tests that run on such a card.
const Check = "nested"

// Card is a soft GPU with its gpud, and the library that is its driver.
type Card struct {
	libraries string // folder of the guest's libcuda.so.1 and libnvidia-ml.so.1
	strict    string // folder of the strict layer's libcuda.so.1
	programs  string // folder of basalt-gpud and basalt-worker
	socket    string
}

// Start starts a card with VRAM in the format of basalt-gpud's --soft-gpu; it ends
// with the test. libraries is the folder of the guest library; empty: Start builds it.
func Start(t testing.TB, libraries, vram string) *Card {
	t.Helper()
	if libraries == "" {
		guest, _ := built.Guest(t)
		libraries = filepath.Join(guest, "lib")
	}
	c := &Card{libraries: libraries, programs: built.Programs(t, "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker")}
	c.strict = buildStrict(t)
	c.socket = c.gpud(t, nil, "--no-nvidia", "--soft-gpu", "vram="+vram)
	return c
}

// buildStrict builds the strict layer and returns its folder, which is readable
// for workers of another user.
func buildStrict(t testing.TB) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed; the strict layer before libcuda needs it")
	}
	sources, err := filepath.Glob(filepath.Join(tree.Top(), "gpu/conformance/nested/strict/*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("sources of the strict layer: %v, %v", sources, err)
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-o", filepath.Join(dir, soname)}
	if out, err := exec.Command(gcc, append(append(args, sources...), "-ldl", "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("compile the strict layer: %v\n%s", err, out)
	}
	return dir
}

const soname = "libcuda.so.1"

// SlowKernels returns a variable for the environment of a process that has a card:
// each of its kernels then takes at least the given time.
func SlowKernels(each time.Duration) string {
	return fmt.Sprintf("STRICT_KERNEL_MICROS=%d", each.Microseconds())
}

// Env returns the environment variables that a process needs to have the card.
func (c *Card) Env() []string {
	return []string{
		"LD_LIBRARY_PATH=" + c.strict + ":" + c.libraries, "STRICT_LIBRARY=" + filepath.Join(c.libraries, soname),
		"BASALT_GPU=unix:" + c.socket, "BASALT_VERBOSE=1",
	}
}

// Library returns the path of the card's libcuda.
func (c *Card) Library() string { return filepath.Join(c.strict, soname) }

// Socket returns the socket of the card's own gpud, for programs that examine the
// card from outside.
func (c *Card) Socket() string { return c.socket }

// Path starts the gpud of a host that has the card: it finds the card through NVML,
// and its workers use it through gpu/cuda, in their sandbox, with env added to their
// environment. It returns the socket for programs.
func (c *Card) Path(t testing.TB, env ...string) (socket string) {
	t.Helper()
	return c.gpud(t, append(c.Env(), env...))
}

// gpud starts basalt-gpud --standalone and waits until it listens.
func (c *Card) gpud(t testing.TB, env []string, options ...string) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nested") // unix socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // workers may run as another user
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	cmd := exec.Command(filepath.Join(c.programs, "basalt-gpud"), append(options, "--standalone", "--socket", socket, "--state", filepath.Join(dir, "state"))...)
	cmd.Env = append(os.Environ(), env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
		if t.Failed() {
			t.Logf("log of gpud %v:\n%s", options, log.String())
		}
	})
	patience.Until(t, 30*time.Second, "gpud listens", func() bool {
		l, err := net.Dial("unix", socket)
		if err != nil {
			return false
		}
		return l.Close() == nil
	})
	return socket
}

// Rerun runs tests of the calling test binary again on the card, and fails the
// test unless all pass.
func (c *Card) Rerun(t *testing.T, tests string, env ...string) {
	t.Helper()
	out, err := c.Run(t, tests, env...)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: ")) {
		t.Errorf("%s on the nested card: %v\n%s", tests, err, out)
	}
}

// Run runs tests of the calling test binary in a process that has the card as its only
// one, and returns their output: libcuda keeps one session for the whole life of a
// process.
func (c *Card) Run(t *testing.T, tests string, env ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", tests, "-test.v")
	cmd.Env = append(append(append(os.Environ(), c.Env()...), "BASALT_CHECK_CARD="+Check, "BASALT_CUDA_LIBRARY="+c.Library()), env...)
	return cmd.CombinedOutput()
}
