package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/gpud/cgroup"
)

// confine drops the privileges that a worker does not need. Some of them belong to threads, and
// a Go program has several before main: so the first stage drops them on one thread and
// executes itself, under a name by which the second stage is recognized. Only a check may leave
// out a part.
func confine(o options) error {
	if err := limitResources(); err != nil {
		return err
	}
	if os.Args[0] == confinedName {
		if o.leavesOut("seccomp") {
			return nil
		}
		return restrict()
	}
	if err := dropStdout(); err != nil {
		return err
	}
	if err := cgroup.SetOOMScore(cgroup.OOMScoreFirst); err != nil {
		return fmt.Errorf("set the OOM score: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	// Root without capabilities can only access its own files and sockets.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) {
			break // the process is not privileged
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err := dieWithParent(); err != nil {
		return err
	}
	if !o.leavesOut("landlock") {
		if err := landlock(); err != nil {
			return err
		}
	}
	args := append([]string{confinedName}, os.Args[1:]...)
	return fmt.Errorf("execute /proc/self/exe: %w", unix.Exec("/proc/self/exe", args, os.Environ()))
}

const confinedName = "basalt-worker: confined"

// dropStdout redirects stdout to /dev/null: the parent's is a log of the host, and a GPU's driver
// writes to stdout what tenants' kernels print, without a limit. That of a card is collected
// (stdio.Start).
func dropStdout() error {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer nowhere.Close()
	if err := unix.Dup3(int(nowhere.Fd()), 1, 0); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	return nil
}

// dieWithParent requests SIGKILL for when the parent ends, and fails if it has ended already.
// The setting survives the exec.
func dieWithParent() error {
	parent := os.Getppid()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	if os.Getppid() != parent {
		return errors.New("the parent process has exited")
	}
	return nil
}

// endWithParent changes the signal for when the parent ends to SIGTERM, so that this process can
// tell its guest, whose program otherwise waits until it misses the heartbeat. It must be called
// by the thread that confine has set the signal for. A stopped worker is continued by the kernel
// when its parent ends, because it has a process group of its own (setpgid(2)).
func endWithParent() error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return fmt.Errorf("parent death signal: %w", err)
	}
	return nil
}

const maxFiles = 4096

func limitResources() error {
	// A core dump would contain the tenant's memory.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("core limit: %w", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("file limit: %w", err)
	}
	files.Max = min(files.Max, maxFiles)
	files.Cur = min(files.Cur, files.Max)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("file limit: %w", err)
	}
	return nil
}
