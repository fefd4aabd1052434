// Package nested is a card for tests of the card's path on machines that have
// none: the guest library, given to gpu/cuda as the host's libcuda, on a vGPU of
// a second basalt-gpud with a soft GPU.
//
//	program ─► guest library ─► worker (gpu/cuda) ─► guest library ─► worker (gpu/soft)
//	           Path's gpud ───────┘                  Card's gpud ───────┘
//
// Nothing in the product knows of it. A process uses the card because whoever
// starts it has put the guest library into its LD_LIBRARY_PATH and the card's
// socket into BASALT_GPU (Card.Env): libcuda and libnvidia-ml are found there
// like a vendor's. docs/decisions/0043-the-cards-path-nested.md says what such
// a card cannot do.
package nested

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/installer/dev/built"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// Check is the value of BASALT_CHECK_CARD for tests that run on such a card.
const Check = "nested"

// Card is a soft GPU with its gpud, and the library that is its driver.
type Card struct {
	libraries string // folder of libcuda.so.1 and libnvidia-ml.so.1
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
	c.socket, _ = c.gpud(t, nil, "--no-nvidia", "--soft-gpu", "vram="+vram)
	return c
}

// Env is what a process needs in its environment to have the card.
func (c *Card) Env() []string {
	return []string{"LD_LIBRARY_PATH=" + c.libraries, "BASALT_GPU=unix:" + c.socket, "BASALT_VERBOSE=1"}
}

// Library is the path of the card's libcuda.
func (c *Card) Library() string { return filepath.Join(c.libraries, "libcuda.so.1") }

// Path starts the gpud of a host that has the card: it finds it by NVML, and its
// workers use it through gpu/cuda, in their jail. It returns the socket for
// programs, and the process.
func (c *Card) Path(t testing.TB, options ...string) (socket string, gpud *os.Process) {
	t.Helper()
	return c.gpud(t, c.Env(), options...)
}

// gpud starts basalt-gpud --standalone and waits until it listens.
func (c *Card) gpud(t testing.TB, env []string, options ...string) (socket string, _ *os.Process) {
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
	return socket, cmd.Process
}

// Rerun runs tests of the calling test binary once more, in a process that has the
// card as its only one: libcuda keeps one session for all of a process's life.
func (c *Card) Rerun(t *testing.T, tests string, env ...string) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run", tests, "-test.v")
	cmd.Env = append(append(append(os.Environ(), c.Env()...), "BASALT_CHECK_CARD="+Check, "BASALT_CUDA_LIBRARY="+c.Library()), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: ")) {
		t.Errorf("%s on the nested card: %v\n%s", tests, err, out)
	}
}
