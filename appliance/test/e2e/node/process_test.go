package node_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// process of this machine.
type process struct {
	pid  int
	argv []string
}

func (p process) command() string { return strings.Join(p.argv, " ") }

// processes whose command line names one of the node's directories.
func (n *node) processes() (all []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		raw, err2 := os.ReadFile(dir + "/cmdline")
		if err != nil || err2 != nil || pid == os.Getpid() {
			continue
		}
		if text := string(raw); strings.Contains(text, n.run) || strings.Contains(text, n.data) {
			all = append(all, process{pid, strings.Split(strings.TrimRight(text, "\x00"), "\x00")})
		}
	}
	return all
}

// of lists the processes of a program that have an argument.
func (n *node) of(program, arg string) (pids []int) {
	for _, p := range n.processes() {
		if strings.HasPrefix(filepath.Base(p.argv[0]), program) && strings.Contains(p.command(), arg) {
			pids = append(pids, p.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// the one process of a program that has an argument.
func (n *node) the(t *testing.T, program, arg string) int {
	t.Helper()
	pids := n.of(program, arg)
	if len(pids) != 1 {
		t.Fatalf("%d processes %s with %s", len(pids), program, arg)
	}
	return pids[0]
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// fresh are the numbers in now that were not there before.
func fresh(before, now []int) (added []int) {
	for _, pid := range now {
		if !slices.Contains(before, pid) {
			added = append(added, pid)
		}
	}
	return added
}
