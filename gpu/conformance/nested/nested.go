// Package nested is a card for tests of the card's path on machines that have
// none: the guest library, given to gpu/cuda as the host's libcuda, on a vGPU of
// a second basalt-gpud with a soft GPU.
//
//	program ─► guest library ─► worker (gpu/cuda) ─► guest library ─► worker (gpu/soft)
//	           Path's gpud ───────┘                  Card's gpud ───────┘
//
// Between gpu/cuda and the guest library stands a strict layer (strict/), which ends
// the process that breaks a documented rule of the driver API, and can let kernels
// take time.
//
// Nothing in the product knows of it. A process uses the card because whoever
// starts it has put the guest library into its LD_LIBRARY_PATH and the card's
// socket into BASALT_GPU (Card.Env): libcuda and libnvidia-ml are found there
// like a vendor's. docs/decisions/0043-the-cards-path-nested.md says what such
// a card cannot do.
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
	strict    string // folder of the libcuda.so.1 before it
	programs  string // folder of basalt-gpud and basalt-worker
	socket    string
}

// Start starts a card of VRAM bytes as basalt-gpud's --soft-gpu has them; it ends with
// the test. libraries is the folder of the guest library; empty: it is built.
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

// buildStrict builds the strict layer and returns its folder, which workers of
// another user can read.
func buildStrict(t testing.TB) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the strict layer before libcuda")
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
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

const soname = "libcuda.so.1"

// SlowKernels is for the environment of a process that has a card: each of its kernels
// takes so long at least.
func SlowKernels(each time.Duration) string {
	return fmt.Sprintf("STRICT_KERNEL_MICROS=%d", each.Microseconds())
}

// Env is what a process needs in its environment to have the card.
func (c *Card) Env() []string {
	return []string{
		"LD_LIBRARY_PATH=" + c.strict + ":" + c.libraries, "STRICT_LIBRARY=" + filepath.Join(c.libraries, soname),
		"BASALT_GPU=unix:" + c.socket, "BASALT_VERBOSE=1",
	}
}

// Library is the path of the card's libcuda.
func (c *Card) Library() string { return filepath.Join(c.strict, soname) }

// Socket is of the card's own gpud, for programs that look at the card from behind.
func (c *Card) Socket() string { return c.socket }

// Path starts the gpud of a host that has the card: it finds it by NVML, and its
// workers use it through gpu/cuda, in their jail, with env in their environment too.
// It returns the socket for programs.
func (c *Card) Path(t testing.TB, env ...string) (socket string) {
	t.Helper()
	return c.gpud(t, append(c.Env(), env...))
}

// gpud starts basalt-gpud --standalone and waits until it listens.
func (c *Card) gpud(t testing.TB, env []string, options ...string) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nested") // unix socket paths are short
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // workers may be another user
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
			t.Logf("gpud %v:\n%s", options, log.String())
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

// Rerun runs tests of the calling test binary once more on the card, and fails the
// test unless all pass.
func (c *Card) Rerun(t *testing.T, tests string, env ...string) {
	t.Helper()
	out, err := c.Run(t, tests, env...)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: ")) {
		t.Errorf("%s on the nested card: %v\n%s", tests, err, out)
	}
}

// Run runs tests of the calling test binary in a process that has the card as its only
// one, and returns what it printed: libcuda keeps one session for all of a process's life.
func (c *Card) Run(t *testing.T, tests string, env ...string) ([]byte, error) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", tests, "-test.v")
	cmd.Env = append(append(append(os.Environ(), c.Env()...), "BASALT_CHECK_CARD="+Check, "BASALT_CUDA_LIBRARY="+c.Library()), env...)
	return cmd.CombinedOutput()
}
