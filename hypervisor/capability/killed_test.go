package capability

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// killed is the environment variable that makes this test binary act as the
// daemon that is killed.
const killed = "BASALT_PROBE_KILLED"

// TestKilledProbeLeavesNothing checks that a daemon that is killed during a
// probe leaves neither QEMU nor its disk behind.
func TestKilledProbeLeavesNothing(t *testing.T) {
	if os.Getenv(killed) != "" {
		t.Fatal(boot(context.Background(), "tcg", "max", time.Hour))
	}
	bin, tmp := t.TempDir(), t.TempDir()
	qemu := "#!/bin/sh\necho $$ >>" + filepath.Join(bin, "pid") + "\nexec sleep 3600\n"
	if err := os.WriteFile(filepath.Join(bin, "qemu-system-x86_64"), []byte(qemu), 0o700); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	daemon.Env = append(os.Environ(), killed+"=1", "TMPDIR="+tmp, "PATH="+bin+":"+os.Getenv("PATH"))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	patience.Until(t, 30*time.Second, "QEMU runs", func() bool { pid = pidIn(filepath.Join(bin, "pid")); return pid != 0 })
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	patience.Until(t, 30*time.Second, "QEMU has ended", func() bool { return unix.Kill(pid, 0) != nil || zombie(pid) })
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left in the directory for temporary files: %v (%v), want nothing", left, err)
	}
}

func pidIn(path string) int {
	raw, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return pid
}

// zombie reports whether the process has exited and nobody has waited for it:
// its parent is PID 1 by then, which in a container may not reap.
func zombie(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if state, ok := strings.CutPrefix(s.Text(), "State:"); ok {
			return strings.Contains(state, "Z")
		}
	}
	return false
}
