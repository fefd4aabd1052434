package ovn

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// northd starts an ovn-northd from north to south.
func northd(t testing.TB, north, south server) process {
	t.Helper()
	dir, err := os.MkdirTemp("", "sdn")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ovn-northd", "--ovnnb-db="+north.endpoint, "--ovnsb-db="+south.endpoint, "--unixctl="+filepath.Join(dir, "ctl"))
	cmd.Env = append(os.Environ(), "OVN_RUNDIR="+dir)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("ovn-northd: %w", err))
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		_ = os.RemoveAll(dir)
	})
	return process(cmd.Process.Pid)
}

// settle waits until ovn-northd has processed everything.
func settle(t testing.TB, north server) {
	t.Helper()
	if out, err := exec.Command("ovn-nbctl", "--db="+north.endpoint, "--no-leader-only", "--timeout=3600", "--wait=sb", "sync").CombinedOutput(); err != nil {
		t.Fatalf("ovn-nbctl sync: %v: %s", err, out)
	}
}

// rows returns the number of rows of a table.
func (s server) rows(t testing.TB, table string) int {
	t.Helper()
	out, err := exec.Command("ovsdb-client", "--timeout=600", "transact", s.endpoint, `["OVN_Southbound", {"op": "select", "table": "`+table+`", "where": [], "columns": ["_uuid"]}]`).Output()
	if err != nil {
		t.Fatalf("ovsdb-client transact on table %s: %v", table, err)
	}
	return bytes.Count(out, []byte(`["uuid",`))
}

// size returns the size of the compacted database file, in MiB.
func (s server) size(t testing.TB) float64 {
	t.Helper()
	if out, err := exec.Command("ovs-appctl", "-t", s.ctl, "ovsdb-server/compact").CombinedOutput(); err != nil {
		t.Fatalf("ovs-appctl compact: %v: %s", err, out)
	}
	info, err := os.Stat(s.file)
	if err != nil {
		t.Fatal(err)
	}
	return float64(info.Size()) / (1 << 20)
}

// process is the PID of another process.
type process int

func (p process) kill() { _ = syscall.Kill(int(p), syscall.SIGKILL) }

// cpu returns its used CPU time in seconds (proc(5), /proc/pid/stat: utime and
// stime, in ticks of 1/100 s).
func (p process) cpu(t testing.TB) float64 {
	t.Helper()
	fields := strings.Fields(p.proc(t, "stat"))
	for i, f := range fields { // a name may contain spaces, and ends with a parenthesis
		if strings.HasSuffix(f, ")") && len(fields) > i+13 {
			user, _ := strconv.Atoi(fields[i+12])
			system, _ := strconv.Atoi(fields[i+13])
			return float64(user+system) / 100
		}
	}
	t.Fatalf("/proc/%d/stat = %q, want utime and stime", p, fields)
	return 0
}

// peak returns its peak memory use in MiB.
func (p process) peak(t testing.TB) float64 {
	t.Helper()
	_, after, _ := strings.Cut(p.proc(t, "status"), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after + " ?")[0])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}

func (p process) proc(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
