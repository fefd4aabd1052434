package metadata

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace that exists as long as its file is open.
type namespace struct{ file *os.File }

// newNamespace creates an empty namespace.
func newNamespace() (*namespace, error) {
	n := &namespace{}
	err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace: %w", err)
		}
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return n, err
}

// path returns the path by which another program can open it.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// inside runs f on a thread in the namespace; sockets and processes that f
// creates are in it too.
func (n *namespace) inside(f func() error) error {
	return onThread(func() error {
		raw, err := n.file.SyscallConn()
		if err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		var enterErr error
		err = raw.Control(func(fd uintptr) { enterErr = unix.Setns(int(fd), unix.CLONE_NEWNET) }) // keeps the file open meanwhile
		if err := errors.Join(err, enterErr); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f on a new thread that ends afterwards: a thread that has
// changed its namespace must never run anything else.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}
