package gpud_test

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// lockedBuffer is a log that can be read while it is being written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestOnlyTheTokenRegisters checks that a worker can register with its own vGPU
// only: it lacks the token of another vGPU, and neither the API, nor the log, nor
// a readable file reveals it.
func TestOnlyTheTokenRegisters(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	log := &lockedBuffer{}
	n.cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	n.start()
	a, b := n.put("a", gib, 0), n.put("b", gib, 0)
	if len(a.Token) != 64 || a.Token == b.Token {
		t.Fatalf("tokens = %q and %q, want two different ones of 64 digits", a.Token, b.Token)
	}
	for name, token := range map[string]string{
		"none": "", "another's": b.Token, "cut": a.Token[:63], "longer": a.Token + "0", "guessed": strings.Repeat("0", 64),
	} {
		_, err := client.DialWorker(t.Context(), n.cfg.Socket, "a", client.Options{Token: token})
		if code(err) != "forbidden " {
			t.Errorf("%s: error = %v, want forbidden", name, err)
		}
	}
	n.tokens["a"] = b.Token
	for range 50 {
		if m := n.raw().register("a", 0, worker.Totals{}); m.Code != wire.CodeForbidden {
			t.Fatalf("answer to the registration = %+v, want code %s", m, wire.CodeForbidden)
		}
	}
	n.tokens["a"] = a.Token
	if seen := n.vgpu("a"); len(seen.Processes) != 0 || seen.Token != "" {
		t.Errorf("vGPU = %+v, want no processes and no token", seen)
	}
	honest := n.dial("a")

	// The token survives a restart, and a put that changes the vGPU.
	n.stop()
	if st, err := os.Stat(filepath.Join(n.cfg.StateDir, "state.json")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("state file: %v, %v, want mode 0600", st, err)
	}
	n.start()
	if again := n.put("a", 2*gib, 0); again.Token != a.Token {
		t.Error("the token changed after a restart and a put")
	}
	if _, _, err := honest.Memory(); err != nil {
		t.Errorf("memory query of a worker from before the restart = %v, want no error", err)
	}

	// The token is deleted with the vGPU.
	gone, err := n.control.DeleteVGPU(t.Context(), "a")
	if err != nil || gone.Token != "" {
		t.Errorf("deleted vGPU = %+v, %v, want no token", gone, err)
	}
	if again := n.put("a", gib, 0); again.Token == a.Token {
		t.Error("a new vGPU has the token of the deleted one")
	}

	text := log.String()
	if strings.Contains(text, a.Token) || strings.Contains(text, b.Token) {
		t.Error("the log contains a token")
	}
	if lines := strings.Count(text, "refused worker"); lines == 0 || lines > 20 {
		t.Errorf("%d log lines for 55 refusals within a moment, want 1 to 20", lines)
	}
}

// A worker that runs as gpud's own user cannot get tokens from the control API.
func TestTakenOverWorkerMayNotControl(t *testing.T) {
	if b, err := os.ReadFile("/proc/self/status"); err != nil || !bytes.Contains(b, []byte("NoNewPrivs:\t0")) {
		t.Skip("this process has set no_new_privs, so gpud cannot recognize workers by that")
	}
	n := newTestNode(t)
	n.put("a", gib, 0)
	for as, want := range map[string]string{"taken over": `"" forbidden `, "controls": `"` + n.tokens["a"] + `" `} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "NODE_TEST_ROLE="+as, "NODE_TEST_SOCKET="+n.cfg.Socket)
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", as, got, err, want)
		}
	}
}
