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

// process is a process on this machine.
type process struct {
	pid  int
	argv []string
}

func (p process) command() string { return strings.Join(p.argv, " ") }

// processes returns the processes whose command line contains one of the node's directories.
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

// of returns the IDs of a program's processes whose command line contains arg.
func (n *node) of(program, arg string) (pids []int) {
	for _, p := range n.processes() {
		if strings.HasPrefix(filepath.Base(p.argv[0]), program) && strings.Contains(p.command(), arg) {
			pids = append(pids, p.pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// processOf returns the ID of the only process of a program whose command line contains arg.
func (n *node) processOf(t *testing.T, program, arg string) int {
	t.Helper()
	pids := n.of(program, arg)
	if len(pids) != 1 {
		t.Fatalf("processes %s with %s = %v, want one", program, arg, pids)
	}
	return pids[0]
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// fresh returns the numbers in now that are not in before.
func fresh(before, now []int) (added []int) {
	for _, pid := range now {
		if !slices.Contains(before, pid) {
			added = append(added, pid)
		}
	}
	return added
}
