// Package memory is for tests that wait for a disk at every write: their files are stored in
// memory where the machine has a file system for that. A killed process leaves the same files
// there as on a disk; the state after a power cut is tested in appliance/controlplane/store.
package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// shm is the path of Linux's file system in memory, and tmpfs its type (statfs(2)).
const shm, tmpfs = "/dev/shm", 0x01021994

// small is the free space that Main asks for, in bytes.
const small = 1 << 30

// Folder creates a folder for this process, in memory if room bytes are free there. Its path is
// short enough for sockets. Folders of processes that have ended are removed, because they
// occupy memory.
func Folder(purpose string, room uint64) (string, error) {
	at, name := place(room), "basalt-"+purpose+"-"
	forget(at, name)
	return os.MkdirTemp(at, fmt.Sprintf("%s%d-", name, os.Getpid()))
}

// Main runs a package's tests with their temporary folders in a folder in memory, and returns
// the exit status (testing.M.Run).
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

// place returns the parent of folders that need room bytes.
func place(room uint64) string {
	var s unix.Statfs_t
	if err := unix.Statfs(shm, &s); err == nil && s.Type == tmpfs && s.Bavail*uint64(s.Bsize) > room {
		return shm
	}
	return os.TempDir()
}

// forget removes the folders of processes that were killed.
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
