package fence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProcessesAreRecordedBeforeKill checks that a process is in the log before the
// signal is sent, and that another basalt-fence reads it there.
func TestProcessesAreRecordedBeforeKill(t *testing.T) {
	n := start(t, "none", func(d *Daemon) {
		kill := d.reaper.kill
		d.reaper.kill = func(fd int) error {
			if b, err := openKillLog(d.files.run, d.boot); err != nil || len(b.list) != 1 || b.list[0].Instance != "moved" {
				t.Errorf("kill log before the signal = %+v, error %v; want moved", b.list, err)
			}
			return kill(fd)
		}
	})
	moved := n.qemu(t, "moved")
	if err := n.SetLease(Lease{Node: "node-1"}); err != nil {
		t.Fatal(err)
	}
	wait(t, "moved is killed", moved)
	if b, err := openKillLog(n.dir, n.d.boot); err != nil || len(b.list) != 1 {
		t.Errorf("kill log of this boot = %+v, error %v; want one process", b, err)
	}
	if b, err := openKillLog(n.dir, "another boot"); err != nil || len(b.list) != 0 {
		t.Errorf("kill log read in another boot = %+v, error %v; want it empty", b, err)
	}
	writeFile(t, filepath.Join(n.dir, killFile), "{")
	if b, err := openKillLog(n.dir, n.d.boot); err == nil || len(b.list) != 0 {
		t.Errorf("kill log that is not JSON = %+v, error %v; want it empty with an error", b, err)
	}
}

// TestKillsWhomItCannotWriteDown checks that a log which cannot be written prevents
// no kill.
func TestKillsWhomItCannotWriteDown(t *testing.T) {
	n := start(t, "none", func(d *Daemon) {
		if err := os.Mkdir(filepath.Join(d.files.run, killFile), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	moved := n.qemu(t, "moved")
	if err := n.SetLease(Lease{Node: "node-1"}); err != nil {
		t.Fatal(err)
	}
	wait(t, "moved is killed", moved)
	n.until(t, "moved reported as fenced", func(s Status) bool { return len(s.Fenced) == 1 })
}

// TestRecall checks that of the recorded processes those that still run are killed,
// and that ended ones and reused PIDs are left alone.
func TestRecall(t *testing.T) {
	h := newReaper()
	h.proc = t.TempDir()
	var pids []int
	began := func(pid int, name string, ticks int) {
		dir := filepath.Join(h.proc, fmt.Sprint(pid))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir+"/cmdline", "qemu\x00-name\x00guest=basalt-"+name+"\x00")
		writeFile(t, dir+"/stat", fmt.Sprintf("%d (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %d 20 21\n", pid, ticks))
	}
	for range 3 {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, cmd.Process.Pid)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	began(pids[0], "alive", 100)
	began(pids[1], "other", 100)
	began(pids[2], "again", 201)
	h.killLog = &killLog{list: []Killed{
		{Instance: "alive", PID: pids[0], At: 2 * sec}, {Instance: "changed", PID: pids[1], At: 2 * sec},
		{Instance: "again", PID: pids[2], At: 2 * sec}, {Instance: "gone", PID: 1 << 30, At: 2 * sec}}}
	gone, left := h.recall()
	name := func(vs []Killed) (all []string) {
		for _, v := range vs {
			all = append(all, v.Instance)
		}
		return all
	}
	if got := name(left); !slices.Equal(got, []string{"alive"}) {
		t.Errorf("recall found running: %v, want alive", got)
	}
	if got := name(gone); !slices.Equal(got, []string{"changed", "again", "gone"}) {
		t.Errorf("recall found ended: %v, want changed, again and gone", got)
	}
	for _, d := range h.dying {
		_ = unix.Close(d.pidfd)
	}
}
