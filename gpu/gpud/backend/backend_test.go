package backend

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
)

// script returns a backend program that creates its socket file and waits.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backend")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func runner(t *testing.T, dir, binary string) *Runner {
	t.Helper()
	r, err := New(Options{Dir: dir, Binary: binary, Worker: "w", GPUD: "g"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// record returns the record of the running process of id.
func (r *Runner) record(id string) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive[id].rec
}

func ctx(t *testing.T) context.Context {
	c, cancel := patience.Context(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return c
}

func TestStartFindAgainEnd(t *testing.T) {
	dir := t.TempDir()
	bin := script(t, `touch "$2"; exec sleep 600`)
	first := runner(t, dir, bin)
	if _, err := first.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	pid := first.record("ins-1").PID
	if _, err := first.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil || first.record("ins-1").PID != pid {
		t.Errorf("second Ensure: error %v, PID %d; want none and PID %d", err, first.record("ins-1").PID, pid)
	}

	second := runner(t, dir, bin) // as after a restart of the agent
	if !second.Alive("ins-1") {
		t.Fatal("backend ins-1 is not alive for a second Runner, want it found again")
	}
	if err := second.Remove(ctx(t), "ins-1"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		if _, err := startTime(pid); err == nil {
			t.Errorf("process %d still runs after Remove", pid)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("files left after Remove: %v, want none", left)
	}
}

func TestEndedBackendIsReportedAndRestarted(t *testing.T) {
	r := runner(t, t.TempDir(), script(t, `touch "$2"; exec sleep 600`))
	if _, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	old := r.record("ins-1")
	if err := syscall.Kill(old.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case id := <-r.Exits():
		if id != "ins-1" || r.Alive(id) {
			t.Errorf("Exits delivered %s, alive: %v; want ins-1, not alive", id, r.Alive(id))
		}
	case <-ctx(t).Done():
		t.Fatal("Exits delivered nothing after the backend was killed")
	}
	if _, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil || r.record("ins-1") == old {
		t.Errorf("Ensure after the backend ended: %v, PID %d, want a new process", err, r.record("ins-1").PID)
	}
	if err := r.Remove(ctx(t), "ins-1"); err != nil {
		t.Error(err)
	}
}

// A backend does nothing before its record is written, by which it is found
// again: the process that started it may be killed at any moment.
func TestNoBackendWithoutARecord(t *testing.T) {
	r := runner(t, t.TempDir(), script(t, `token=$(cat <&3); [ -n "$token" ] && [ -e "${2%.sock}.json" ] || exit 1; touch "$2"; exec sleep 600`))
	for range 20 {
		if _, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Remove(ctx(t), "ins-1"); err != nil {
			t.Fatal(err)
		}
	}
}

// The token is passed to the backend through a descriptor, where no other process
// sees it.
func TestTokenIsHandedOver(t *testing.T) {
	r := runner(t, t.TempDir(), script(t, `cat <&3; echo " $*"; touch "$2"; exec sleep 600`))
	if _, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(r.path("ins-1", "log"))
	if got, args, _ := strings.Cut(string(log), " "); err != nil || got != "secret" || strings.Contains(args, "secret") || !strings.Contains(args, "--token-fd 3") {
		t.Errorf("token and arguments of the backend = %q, %v; want the token on descriptor 3 only", log, err)
	}
	if err := r.Remove(ctx(t), "ins-1"); err != nil {
		t.Error(err)
	}
}

// A backend serves its profiles only when Debug is set, and leaves no socket for
// them behind.
func TestDebugSocket(t *testing.T) {
	for _, debug := range []bool{false, true} {
		dir := t.TempDir()
		r, err := New(Options{Dir: dir, Binary: script(t, `touch "$2"; echo "$@" >"$2.args"; exec sleep 600`), Worker: "w", GPUD: "g", Debug: debug})
		if err != nil {
			t.Fatal(err)
		}
		socket, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var args string
		patience.Until(t, 20*time.Second, "the backend has noted its arguments", func() bool {
			raw, _ := os.ReadFile(socket + ".args")
			args = string(raw)
			return strings.HasSuffix(args, "\n")
		})
		file := filepath.Join(dir, "ins-1.debug")
		if told := strings.Contains(args, "--debug-listen unix:"+file); told != debug {
			t.Errorf("arguments of the backend with Debug %v = %q, want --debug-listen only if it is set", debug, args)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil { // left by a backend that was killed
			t.Fatal(err)
		}
		if err := r.Remove(ctx(t), "ins-1"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("%s still exists after its backend was removed", file)
		}
	}
}

func TestFailedBackendNamesItsLog(t *testing.T) {
	r := runner(t, t.TempDir(), script(t, `echo broken; exit 1`))
	if _, err := r.Ensure(ctx(t), "ins-1", "secret", cgroup.Limits{}); err == nil {
		t.Fatal("Ensure of a backend that fails to start returned no error")
	}
	if log, err := os.ReadFile(r.path("ins-1", "log")); err != nil || string(log) != "broken\n" {
		t.Errorf("log = %q, %v, want \"broken\\n\"", log, err)
	}
	if _, err := r.Ensure(ctx(t), "../x", "secret", cgroup.Limits{}); err == nil {
		t.Error("Ensure accepted the path ../x as an ID")
	}
}

// A different process that has got the recorded PID is neither adopted nor
// killed.
func TestReusedPID(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	rec, err := recordOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	rec.Started--
	dir := t.TempDir()
	if err := writeRecord(filepath.Join(dir, "ins-1.json"), rec); err != nil {
		t.Fatal(err)
	}
	r := runner(t, dir, "/bin/false")
	if r.Alive("ins-1") {
		t.Error("ins-1 is alive: a process with a different start time was adopted")
	}
	if err := r.Remove(ctx(t), "ins-1"); err != nil {
		t.Error(err)
	}
	if _, err := startTime(cmd.Process.Pid); err != nil {
		t.Errorf("a process with a different start time was killed: %v", err)
	}
}

// A file that a Runner was writing when it was killed is removed when the next
// one starts.
func TestHalfWrittenRecordsAreSwept(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, ".new-1")
	if err := os.WriteFile(half, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	runner(t, dir, "backend")
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("Stat of the unfinished record = %v, want that it does not exist", err)
	}
}
