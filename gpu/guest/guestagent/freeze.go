package guestagent

import (
	"bufio"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// filesystems is what the kernel does about them.
type filesystems interface {
	// mounted are the mount points of file systems on block devices, one for each, in
	// the order in which they were mounted.
	mounted() ([]string, error)
	// freeze returns errNotFreezable for what cannot be frozen by its kind.
	freeze(path string) error
	thaw(path string) error
}

var errNotFreezable = errors.New("this type of file system cannot be frozen")

// frozen are the file systems that this agent has frozen.
type frozen struct {
	system filesystems
	paths  []string
	held   bool // also where there was nothing to freeze
}

func (f *frozen) frozen() bool { return f.held }

func (f *frozen) status() string {
	if f.held {
		return "frozen"
	}
	return "thawed"
}

// freeze all, those mounted last first: a file system in a file lies in another. If one
// fails, none is frozen.
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

// thaw all that were frozen, in the other direction.
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

// kernel is Linux.
type kernel struct{}

// ioctls of include/uapi/linux/fs.h: _IOWR('X', 119, int) and _IOWR('X', 120, int).
const (
	ioctlFreeze = 0xc0045877
	ioctlThaw   = 0xc0045878
)

// mounted implements filesystems (proc_pid_mountinfo(5)).
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

// mount reads a line of mountinfo. ok is false for what is on no block device, and for
// what nobody can write to.
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
	// Blanks and backslashes are written as octal numbers.
	return fields[2], strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4]), true
}

func (kernel) freeze(path string) error {
	err := ioctl(path, ioctlFreeze)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return errNotFreezable
	}
	return err
}

func (kernel) thaw(path string) error { return ioctl(path, ioctlThaw) }

func ioctl(path string, request uint) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.IoctlSetInt(fd, request, 0)
}
