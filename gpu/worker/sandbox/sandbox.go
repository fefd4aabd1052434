// Package sandbox determines the user and the namespaces that workers run in. It
// has the restrictions that only their parent can set (basalt-vgpu, or a
// standalone gpud); workers set the others themselves (basalt-worker's
// confine.go).
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// DefaultUser is the name of the user, and of the group, that workers run as if
// it exists.
const DefaultUser = "basalt-worker"

// namespaces keeps a worker from networks, and from other processes' message queues
// and shared memory. It gets what it needs as descriptors, or as files: a unix socket
// with a path is one. It has no PID namespace: libcuda names its threads through
// /proc/self/task/NUMBER/comm, and its thread IDs must be those of the mounted /proc.
// Other restrictions protect other processes (basalt-worker's seccomp.go and
// Landlock).
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWIPC

// Sandbox is the environment of workers. The zero Sandbox changes nothing.
type Sandbox struct {
	User       *syscall.Credential // nil: the parent's
	Namespaces uintptr             // flags of clone(2)
}

// For returns the sandbox for workers of the user with that name; an empty name
// means DefaultUser if it exists. open describes what is not restricted, for the
// log; empty: nothing.
func For(name string) (j Sandbox, open string, err error) {
	if os.Geteuid() != 0 {
		if u, err := user.Current(); name != "" && (err != nil || u.Username != name && u.Uid != name) {
			return j, "", fmt.Errorf("only root can run workers as user %s", name)
		}
		return j, "not started by root: workers run as the same user", nil
	}
	u, err := lookup(name)
	switch {
	case err != nil:
		return j, "", err
	case u == nil:
		open = "user " + DefaultUser + " does not exist: workers run as root without capabilities"
	default:
		if j.User, err = credential(u); err != nil {
			return j, "", err
		}
	}
	if err := mayUnshare(); err == nil {
		j.Namespaces = namespaces
	} else if open == "" {
		open = fmt.Sprintf("namespaces are not available for workers: %v", err)
	}
	return j, open, nil
}

// Apply applies the sandbox to a process that will be started.
func (j Sandbox) Apply(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Credential, a.Cloneflags = j.User, a.Cloneflags|j.Namespaces
	return a
}

// lookup returns a user by name or UID, or nil if the default one does not exist.
func lookup(name string) (*user.User, error) {
	if name == "" {
		u, err := user.Lookup(DefaultUser)
		var unknown user.UnknownUserError
		if errors.As(err, &unknown) {
			return nil, nil
		}
		return u, err
	}
	if _, err := strconv.Atoi(name); err == nil {
		return user.LookupId(name)
	}
	return user.Lookup(name)
}

// credential includes the user's supplementary groups: they may give access to a
// card.
func credential(u *user.User) (*syscall.Credential, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("list groups of user %s: %w", u.Username, err)
	}
	var numbers []uint32
	for _, id := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("look up user %s: %w", u.Username, err)
		}
		numbers = append(numbers, uint32(n))
	}
	return &syscall.Credential{Uid: numbers[0], Gid: numbers[1], Groups: numbers[2:]}, nil
}

// mayUnshare tries to create the namespaces on a thread that ends: root in a
// container may not be allowed to.
func mayUnshare() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends
		result <- unix.Unshare(namespaces)
	}()
	return <-result
}
