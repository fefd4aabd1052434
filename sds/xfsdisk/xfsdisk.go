// Package xfsdisk creates and mounts a file system on a whole disk for a local
// pool: XFS with reflink.
//
//	Blank ─Make─► Begun ─► Whole ─Mount, Mark─► marked: there is a pool
//
// The UUID is chosen by the caller, and derived from the disk's purpose: so
// what a killed Make has left is distinguished from other file systems, and
// mounts use it instead of a path.
package xfsdisk

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

// Content is the content of a disk.
type Content string

// Contents.
const (
	Missing Content = "missing" // the disk does not exist, or cannot be read
	Blank   Content = "blank"
	Begun   Content = "begun" // Make was interrupted
	Whole   Content = "whole" // the file system of that UUID
	Other   Content = "other"
)

// Found is the content of a disk.
type Found struct {
	Content Content
	What    string // description, for Missing and Other
}

// Probe returns the content of a disk that should have a file system with the
// UUID.
func Probe(ctx context.Context, path string, want UUID) (Found, error) {
	dev, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOMEDIUM):
		return Found{Missing, "the disk was not found on its node"}, nil
	case err != nil:
		return Found{}, err
	}
	defer dev.Close()
	head, tail, err := rawdisk.Ends(dev)
	switch sb, is := decode(head); {
	case errors.Is(err, unix.EIO):
		return Found{Missing, "the disk is not readable"}, nil
	case err != nil:
		return Found{}, fmt.Errorf("read both ends of %s: %w", path, err)
	case is && sb.uuid == want && sb.inProgress:
		return Found{Content: Begun}, nil
	case is && sb.uuid == want:
		return Found{Content: Whole}, nil
	case !rawdisk.Zero(head) || !rawdisk.Zero(tail):
		return Found{Other, rawdisk.Describe(ctx, path)}, nil
	}
	who, err := inUse(path)
	if who != "" {
		return Found{Other, who}, err
	}
	return Found{Content: Blank}, err
}

// makeTime is how long creating a file system may take: some disks discard
// blocks slowly.
const makeTime = 10 * time.Minute

// label is the label of the file systems, which other tools show.
const label = "basalt-local"

// Make creates the file system. The disk's content is lost: the caller must
// have probed it. After an interruption at any point the disk is Blank, Begun
// or Whole.
func Make(ctx context.Context, path string, id UUID) error {
	who, err := inUse(path)
	if err != nil {
		return err
	}
	if who != "" {
		return api.Errorf(api.CodeInUse, "%s: %s", path, who)
	}
	if err := Erase(path); err != nil { // removes other signatures, which mkfs.xfs would leave
		return err
	}
	_, err = command.Exec(ctx, command.Exe{
		Program: "mkfs.xfs", Args: []string{"-q", "-f", "-L", label, "-m", "crc=1,reflink=1,uuid=" + id.String(), path}, Verb: "-f", Timeout: makeTime,
	})
	if err != nil {
		return fmt.Errorf("create a file system on %s: %w", path, err)
	}
	return nil
}

// inUse returns what uses the disk, or "" if nothing does.
func inUse(path string) (string, error) {
	who, err := rawdisk.InUse(path)
	if err != nil {
		return who, fmt.Errorf("query whether %s is in use: %w", path, err)
	}
	return who, nil
}

// Erase removes the signatures of the file system.
func Erase(path string) error {
	if err := rawdisk.Wipe(path); err != nil {
		return fmt.Errorf("wipe %s: %w", path, err)
	}
	return nil
}

// options of a mount. Guests' disks are files there and nothing else; a file
// system that shuts down after an error stays so until an operator acts.
const options = "noatime,nodev,nosuid,noexec"

// Mount mounts the disk's file system in a directory, which it creates. With
// systemd as the init process it uses a mount unit, so that guests stop before
// the unmount.
func Mount(ctx context.Context, path, dir string, systemd bool) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	exe := command.Exe{Program: "mount", Args: []string{"-t", "xfs", "-o", options, "--", path, dir}, Verb: "-t", Timeout: mountTime}
	if systemd {
		exe = command.Exe{Program: "systemd-mount", Args: []string{"--quiet", "--collect", "--fsck=no", "--type=xfs", "--options=" + options,
			"--description=Basalt's storage pool", "--property=Before=basalt-guests.service", "--", path, dir}, Verb: "--quiet", Timeout: mountTime}
	}
	if _, err := command.Exec(ctx, exe); err != nil {
		return fmt.Errorf("mount %s on %s: %w", path, dir, err)
	}
	return nil
}

// mountTime suffices for a file system whose log is replayed.
const mountTime = 5 * time.Minute

// Unmount unmounts the directory: in_use while something is open there. It
// returns nil if nothing is mounted.
func Unmount(dir string) error {
	switch err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); {
	case err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.EBUSY):
		return api.Errorf(api.CodeInUse, "the file system in %s is in use", dir).WithHint("stop the instances whose volumes lie there")
	default:
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
}

// Device returns the number of the device that is mounted in a directory; 0:
// none. It reads the kernel's table and does not access the file system, which
// may hang.
func Device(dir string) (uint64, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return deviceIn(f, dir)
}

// unescape decodes the kernel's escapes of blanks (proc_pid_mountinfo(5)).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func deviceIn(mountinfo io.Reader, dir string) (dev uint64, err error) {
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		var major, minor uint32
		f := strings.Fields(lines.Text())
		if len(f) < 5 || unescape.Replace(f[4]) != dir {
			continue
		}
		if _, err := fmt.Sscanf(f[2], "%d:%d", &major, &minor); err != nil {
			return 0, fmt.Errorf("read /proc/self/mountinfo: %q: %w", f[2], err)
		}
		dev = unix.Mkdev(major, minor) // the last one hides earlier ones
	}
	return dev, lines.Err()
}

// IsDevice reports whether the disk is the device of that number.
func IsDevice(path string, dev uint64) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Rdev == dev
}

// Mark is a file in the root of a file system with the pool that it belongs
// to. Without it there is no pool.
type Mark struct {
	Version int        `json:"version"` // 1
	Node    api.NodeID `json:"node"`
	Disk    api.DiskID `json:"disk"`
	Pool    string     `json:"pool"`
}

const (
	markName  = "basalt-pool.json"
	maxMark   = 64 << 10 // bytes
	lostFound = "lost+found"
)

// ReadMark reads the mark of what is mounted in a directory; the error is
// fs.ErrNotExist if there is none.
func ReadMark(dir string) (m Mark, err error) {
	f, err := os.Open(filepath.Join(dir, markName))
	if err != nil {
		return m, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMark))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%s in %s: %w", markName, dir, err)
	}
	return m, nil
}

// Check reads the mark, creates it if the file system is empty, and returns an
// error for any other.
func Check(dir string, want Mark) error {
	have, err := ReadMark(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return writeMark(dir, want)
	}
	if err != nil {
		return err
	}
	if have != want {
		return api.Errorf(api.CodeState, "the disk contains pool %s of node %s, want pool %s of node %s", have.Pool, have.Node, want.Pool, want.Node)
	}
	return nil
}

func writeMark(dir string, m Mark) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lostFound && !strings.HasPrefix(e.Name(), ".new-") { // left by a write that was killed
			return api.Errorf(api.CodeState, "the file system in %s is not empty and not a storage pool", dir)
		}
	}
	return atomicfile.WriteFile(filepath.Join(dir, markName), api.Encode(m), 0o600)
}
