// Package sandbox says as whom and in what surroundings workers run: whoever
// starts them (basalt-vgpu, a standalone gpud) gives up for them what only a
// parent can. The rest they give up themselves (basalt-worker's confine.go).
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

// DefaultUser is the user, and the group, that workers run as where it exists.
const DefaultUser = "basalt-worker"

// namespaces of its own keep a worker from networks, and from other processes' queues
// and shared memory. What it needs it has as descriptors, or as files: a unix socket
// with a path is one. It has none of processes: libcuda names its threads by
// /proc/self/task/NUMBER/comm, and its numbers there must be those of this /proc. To
// other processes it can do nothing (basalt-worker's seccomp.go and Landlock).
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWIPC

// Sandbox is where workers run. The zero Sandbox changes nothing.
type Sandbox struct {
	User       *syscall.Credential // nil: the parent's
	Namespaces uintptr             // flags of clone(2)
}

// For is the sandbox for workers of the user of that name; empty means
// DefaultUser if it exists. open says what stays open, for the log; empty: nothing.
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

// Apply puts a process to be started into the sandbox.
func (j Sandbox) Apply(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Credential, a.Cloneflags = j.User, a.Cloneflags|j.Namespaces
	return a
}

// lookup finds a user by name or number; nil: the default one does not exist.
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

// credential has the user's further groups too: a card may be theirs.
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

// mayUnshare tries it on a thread that ends: root in a container may not.
func mayUnshare() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		result <- unix.Unshare(namespaces)
	}()
	return <-result
}
