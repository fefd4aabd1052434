package metadata

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace that lives as long as its file is open.
type namespace struct{ file *os.File }

// newNamespace makes an empty one.
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

// path by which another program opens it.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// inside runs f on a thread that is in it; what f starts or opens is in it too.
func (n *namespace) inside(f func() error) error {
	return onThread(func() error {
		raw, err := n.file.SyscallConn()
		if err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		var enterErr error
		err = raw.Control(func(fd uintptr) { enterErr = unix.Setns(int(fd), unix.CLONE_NEWNET) }) // it is not closed meanwhile
		if err := errors.Join(err, enterErr); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f on a thread of its own that ends with it: one that has been
// elsewhere must never run anything else.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}
