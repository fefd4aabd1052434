package guestagent

import (
	"bufio"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// filesystems are the kernel's operations on file systems; tests replace them.
type filesystems interface {
	// mounted returns one mount point of each file system on a block device, in the order
	// in which they were mounted.
	mounted() ([]string, error)
	// freeze returns errNotFreezable if the type of file system cannot be frozen.
	freeze(path string) error
	thaw(path string) error
}

var errNotFreezable = errors.New("this type of file system cannot be frozen")

// frozen records the file systems that this agent has frozen.
type frozen struct {
	system filesystems
	paths  []string
	held   bool // between freeze and thaw, even if there was nothing to freeze
}

// frozen reports whether file systems are frozen.
func (f *frozen) frozen() bool { return f.held }

// status returns the result of guest-fsfreeze-status.
func (f *frozen) status() string {
	if f.held {
		return "frozen"
	}
	return "thawed"
}

// freeze freezes all file systems and returns their number. It begins with the one that was
// mounted last, because a file system can be in a file of an earlier one. If one fails, it
// thaws those that were frozen.
func (f *frozen) freeze() (any, *fault) {
	paths, err := f.system.mounted()
	if err != nil {
		return nil, generic("list file systems: %v", err)
	}
	f.held = true
	for _, path := range slices.Backward(paths) {
		err := f.system.freeze(path)
		switch {
		case errors.Is(err, errNotFreezable):
		case err != nil:
			f.thaw()
			return nil, generic("failed to freeze %s: %v", path, err)
		default:
			f.paths = append(f.paths, path)
		}
	}
	return len(f.paths), nil
}

// thaw thaws all frozen file systems in the reverse order, and returns how many succeeded.
func (f *frozen) thaw() int {
	n := 0
	for _, path := range slices.Backward(f.paths) {
		if f.system.thaw(path) == nil {
			n++
		}
	}
	f.paths, f.held = nil, false
	return n
}

// kernel implements filesystems with Linux's system calls.
type kernel struct{}

// Ioctls of include/uapi/linux/fs.h: _IOWR('X', 119, int) and _IOWR('X', 120, int).
const (
	ioctlFreeze = 0xc0045877
	ioctlThaw   = 0xc0045878
)

// mounted implements filesystems. It reads /proc/self/mountinfo (proc_pid_mountinfo(5)).
func (kernel) mounted() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var paths []string
	seen := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		device, path, ok := mount(lines.Text())
		if ok && !seen[device] {
			seen[device] = true
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// mount parses a line of mountinfo. ok is false if the file system is not on a block device
// (loop devices do not count), or cannot be written to.
func mount(line string) (device, path string, ok bool) {
	left, right, found := strings.Cut(line, " - ")
	fields, kind := strings.Fields(left), strings.Fields(right)
	if !found || len(fields) < 6 || len(kind) < 3 {
		return "", "", false
	}
	if !strings.HasPrefix(kind[1], "/dev/") || strings.HasPrefix(kind[1], "/dev/loop") || kind[0] == "iso9660" || kind[0] == "squashfs" ||
		slices.Contains(strings.Split(kind[2], ","), "ro") {
		return "", "", false
	}
	// White space and backslashes are escaped as octal numbers.
	return fields[2], strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4]), true
}

// freeze implements filesystems.
func (kernel) freeze(path string) error {
	err := ioctl(path, ioctlFreeze)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return errNotFreezable
	}
	return err
}

// thaw implements filesystems.
func (kernel) thaw(path string) error { return ioctl(path, ioctlThaw) }

func ioctl(path string, request uint) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.IoctlSetInt(fd, request, 0)
}
