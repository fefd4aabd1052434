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

// TestTimer arms the time limit with a real systemd (a user's instance, in
// namespaces of its own): it must start the rollback, start it again while that
// fails, and not start it once disarmed.
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
		t.Fatalf("test in the namespaces: %v", err)
	}
}

func testTimer(t *testing.T) {
	must(t, "mount", "--make-rprivate", "/")
	must(t, "mount", "-t", "tmpfs", "tmpfs", "/run")
	must(t, "mkdir", "-p", "/run/systemd/system") // as on a machine that was booted by systemd
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("HOME", dir)
	start(t, filepath.Join(dir, "systemd/private"), "/usr/lib/systemd/systemd", "--user")

	count, program := filepath.Join(dir, "count"), filepath.Join(dir, "program")
	// The program fails twice, as it does while another command has the lock.
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
		t.Fatalf("Disarm: error %v, timer active: %v; want neither", err, active(".timer"))
	}
	if err := h.Arm(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := h.Arm(context.Background(), time.Second); err != nil { // replaces the other
		t.Fatal(err)
	}
	var lines []string
	patience.Until(t, time.Minute, "the rollback succeeds", func() bool {
		data, _ := os.ReadFile(count)
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
		return len(lines) >= 3
	})
	if lines[0] != "network rollback --when-due" {
		t.Errorf("program started with arguments %q, want network rollback --when-due", lines[0])
	}
	patience.Until(t, time.Minute, "timer and service are not active", func() bool { return !active(".timer") && !active(".service") })
	if err := h.Arm(t.Context(), time.Hour); err != nil {
		t.Errorf("Arm after a rollback: %v", err)
	}
}
