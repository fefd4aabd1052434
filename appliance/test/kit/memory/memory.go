// Package memory is for tests that wait for a disk at every write: what they write
// lies in memory where the machine has a place for that. A process that is killed
// leaves the same files there as on a disk; what a power cut leaves is
// appliance/controlplane/store's to test.
package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// shm is Linux's file system in memory, and its kind (statfs(2)).
const shm, tmpfs = "/dev/shm", 0x01021994

// small is the room that Main wants, in bytes.
const small = 1 << 30

// Folder makes one for this process, in memory where room bytes are free there, with
// a path that is short enough for sockets. Those of processes that have ended are
// removed: they take memory.
func Folder(purpose string, room uint64) (string, error) {
	at, name := place(room), "basalt-"+purpose+"-"
	forget(at, name)
	return os.MkdirTemp(at, fmt.Sprintf("%s%d-", name, os.Getpid()))
}

// Main runs a package's tests with their temporary folders in such a folder, and
// returns the exit status (testing.M.Run).
func Main(m *testing.M) int {
	dir, err := Folder("test", small)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// place for folders with that much in them.
func place(room uint64) string {
	var s unix.Statfs_t
	if err := unix.Statfs(shm, &s); err == nil && s.Type == tmpfs && s.Bavail*uint64(s.Bsize) > room {
		return shm
	}
	return os.TempDir()
}

// forget removes what processes have left that were killed.
func forget(at, name string) {
	all, _ := filepath.Glob(filepath.Join(at, name+"*-*"))
	for _, dir := range all {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), name+"%d-", &pid); err != nil {
			continue
		}
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}
