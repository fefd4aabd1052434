package trial

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestTimer arms the time limit with a real systemd (a user's instance, in namespaces of
// its own): it starts the rollback, again while that fails, and not once it is disarmed.
func TestTimer(t *testing.T) {
	if os.Getenv(inside) != "" {
		testTimer(t)
		return
	}
	if testing.Short() {
		t.Skip("starts systemd")
	}
	if os.Getuid() != 0 {
		t.Skip("host: needs root for namespaces")
	}
	if _, err := exec.LookPath("/usr/lib/systemd/systemd"); err != nil {
		t.Skipf("host: %v", err)
	}
	ctx, cancel := patience.Context(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--", os.Args[0], "-test.run=^TestTimer$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("inside:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func testTimer(t *testing.T) {
	must(t, "mount", "--make-rprivate", "/")
	must(t, "mount", "-t", "tmpfs", "tmpfs", "/run")
	must(t, "mkdir", "-p", "/run/systemd/system") // as on a machine that systemd has started
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("HOME", dir)
	start(t, filepath.Join(dir, "systemd/private"), "/usr/lib/systemd/systemd", "--user")

	count, program := filepath.Join(dir, "count"), filepath.Join(dir, "program")
	// It fails twice, as while another command has the lock.
	script := "#!/bin/sh\necho \"$*\" >>" + count + "\n[ $(wc -l <" + count + ") -ge 3 ]\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	h := Host{Program: program, scope: []string{"--user"}}
	active := func(unit string) bool {
		return exec.Command("systemctl", "--user", "--quiet", "is-active", RollbackUnit+unit).Run() == nil
	}
	if err := h.Arm(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := h.Disarm(t.Context()); err != nil || active(".timer") {
		t.Fatalf("disarm: %v; the timer is active: %v", err, active(".timer"))
	}
	if err := h.Arm(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := h.Arm(context.Background(), time.Second); err != nil { // in the place of the other
		t.Fatal(err)
	}
	var lines []string
	patience.Until(t, time.Minute, "the rollback succeeds", func() bool {
		data, _ := os.ReadFile(count)
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
		return len(lines) >= 3
	})
	if lines[0] != "network rollback --when-due" {
		t.Errorf("started with %q, want network rollback --when-due", lines[0])
	}
	patience.Until(t, time.Minute, "nothing is left", func() bool { return !active(".timer") && !active(".service") })
	if err := h.Arm(t.Context(), time.Hour); err != nil {
		t.Errorf("arm after a rollback: %v", err)
	}
}
