package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// childWritesAlone writes one batch after the other as one client, and prints the
// number of each when it is acknowledged.
func childWritesAlone(dir string) error {
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
	if err != nil {
		return err
	}
	fmt.Println("open")
	for k := 1; k <= synced; k++ {
		if _, err := s.Apply(context.Background(), statetest.Batch(0, k)); err != nil {
			return err
		}
		fmt.Println("acknowledged", k)
	}
	return s.Close()
}

const synced = 20

// No write is acknowledged before the log is on the disk, which TestPowerCut relies on.
// strace prints the system calls of a real process, in order.
func TestAcknowledgedIsSynced(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("host: strace is not installed")
	}
	inner := child(t, "write-alone", t.TempDir())
	cmd := exec.Command("strace", "-f", "-y", "-e", "trace=fdatasync,fsync,write", "-e", "signal=none", inner.Path)
	cmd.Env = inner.Env
	calls, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged, unsynced, rest := follow(calls)
	if err := cmd.Wait(); err != nil {
		if strings.Contains(rest, "ptrace") {
			t.Skipf("host: strace does not work here: %s", rest)
		}
		t.Fatalf("%v\n%s", err, rest)
	}
	if acknowledged != synced || len(unsynced) > 0 {
		t.Errorf("acknowledged %d of %d writes, these before the log was on the disk: %v; want all, and none of these", acknowledged, synced, unsynced)
	}
}

// follow parses the output of strace. A call of one thread that another's line
// interrupts is printed twice: "unfinished" and "resumed".
func follow(calls io.Reader) (acknowledged int, unsynced []int, rest string) {
	logged, waits := false, map[string]bool{} // threads that wait for the log's disk
	for lines := bufio.NewScanner(calls); lines.Scan(); {
		line := lines.Text()
		_, thread, _ := strings.Cut(line, "[pid ")
		thread, _, _ = strings.Cut(thread, "]")
		sync := strings.Contains(line, "sync(") && strings.Contains(line, "/log.db>")
		switch {
		case sync && strings.Contains(line, "<unfinished"):
			waits[thread] = true
		case sync, strings.Contains(line, "sync resumed") && waits[thread]:
			logged = logged || strings.HasSuffix(line, "= 0")
			delete(waits, thread)
		case strings.Contains(line, `"acknowledged `):
			if acknowledged++; !logged {
				unsynced = append(unsynced, acknowledged)
			}
			logged = false
		case !strings.Contains(line, "write(") && !strings.Contains(line, "sync"):
			rest += line + "\n"
		}
	}
	return acknowledged, unsynced, rest
}
