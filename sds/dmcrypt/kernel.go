// Package dmcrypt encrypts block devices with LUKS2 and the kernel's device mapper, by
// the program cryptsetup.
//
//	device ─Format─► header, label ─Open─► mapping with the content in plain
//	       ◄─Shred─ closed ◄─Close─┘
//
// Keys are random, so they need no stretching: a key slot has the fewest iterations
// that are allowed, and opening one takes no memory. Keys are passed through pipes.
package dmcrypt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

const (
	// timeout is the limit of one program, which may have to wait for udev.
	timeout = 2 * time.Minute
	// iterations is the minimum of cryptsetup.
	iterations = "1000"
)

// Mapping is an open device.
type Mapping struct {
	Path string // of the content in plain; empty: there is no such mapping
	// Over means that it is over the device that was asked for, and not over another
	// or one that is gone.
	Over bool
}

// Kernel encrypts devices with the kernel of this machine. The names of mappings are
// the machine's.
type Kernel struct{}

// Format writes the header of a new encrypted device, with a new random volume key that
// key opens; without a UUID in h, it gets a new one. scratch is a path of a file that is created and removed again. An
// interrupted Format leaves a device without a header, or with one whose UUID and label
// are h's and that may not open.
func (Kernel) Format(ctx context.Context, device string, h Header, key []byte, scratch string) error {
	sector, err := sectorSize(device)
	if err != nil {
		return err
	}
	// Not on the device itself: an interrupted luksFormat leaves content that nothing
	// identifies.
	f, err := os.OpenFile(scratch, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(scratch)
	defer f.Close()
	if err := f.Truncate(HeaderBytes + 1<<20); err != nil { // luksFormat wants space for content
		return err
	}
	args := []string{scratch}
	if h.UUID != "" {
		args = append(args, "--uuid", h.UUID)
	}
	_, err = cryptsetup(ctx, key, "luksFormat", append([]string{"--batch-mode", "--type", "luks2", "--key-file", "-",
		"--cipher", "aes-xts-plain64", "--key-size", "512", "--hash", "sha256", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", iterations,
		"--sector-size", sector, "--offset", fmt.Sprint(HeaderBytes / sectorBytes),
		"--label", h.Label, "--subsystem", h.Subsystem}, args...)...)
	if err != nil {
		return fmt.Errorf("create the header of %s: %w", device, err)
	}
	if err := copyHeader(f, device); err != nil {
		return fmt.Errorf("write the header of %s: %w", device, err)
	}
	return nil
}

// sectorSize returns the size of the sectors that are encrypted: 4096 bytes, unless the
// device ends within one, as it could not be opened.
func sectorSize(device string) (string, error) {
	f, err := os.Open(device)
	if err != nil {
		return "", err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("size of %s: %w", device, err)
	}
	if size%4096 != 0 {
		return fmt.Sprint(sectorBytes), nil
	}
	return "4096", nil
}

// Label changes the label and the subsystem of a device, which may be open.
func (Kernel) Label(ctx context.Context, device string, h Header) error {
	if _, err := cryptsetup(ctx, nil, "config", "--label", h.Label, "--subsystem", h.Subsystem, device); err != nil {
		return fmt.Errorf("change the label of %s: %w", device, err)
	}
	return nil
}

// Open opens a device under a name. It is done already if that mapping is over this
// device; one that is over another is closed first. Discards are not passed on: they
// would show on the device which sectors have content.
func (k Kernel) Open(ctx context.Context, device, name string, key []byte) error {
	m, err := k.Find(ctx, device, name)
	if err != nil || m.Over {
		return err
	}
	if m.Path != "" {
		if err := k.Close(ctx, name); err != nil {
			return err
		}
	}
	// The kernel's queues for small requests only add latency (dm-crypt, no_read_workqueue
	// and no_write_workqueue).
	if _, err := cryptsetup(ctx, key, "open", "--type", "luks2", "--key-file", "-", "--perf-no_read_workqueue", "--perf-no_write_workqueue", device, name); err != nil {
		return fmt.Errorf("open encrypted %s: %w", device, err)
	}
	return nil
}

// Close closes a mapping that nothing uses. One that does not exist is closed already.
func (k Kernel) Close(ctx context.Context, name string) error {
	if m, err := k.Find(ctx, "", name); err != nil || m.Path == "" {
		return err
	}
	if _, err := cryptsetup(ctx, nil, "close", name); err != nil {
		return fmt.Errorf("close encrypted device %s: %w", name, err)
	}
	return nil
}

// Find returns the mapping of that name; device may be empty, or not exist.
func (Kernel) Find(_ context.Context, device, name string) (Mapping, error) {
	names, err := filepath.Glob("/sys/block/dm-*/dm/name")
	if err != nil {
		return Mapping{}, err
	}
	for _, path := range names {
		raw, err := os.ReadFile(path)
		if err != nil { // it was closed meanwhile
			continue
		}
		if strings.TrimSpace(string(raw)) != name {
			continue
		}
		over, err := isOver(filepath.Join(path, "../../slaves"), device)
		return Mapping{Path: "/dev/mapper/" + name, Over: over}, err
	}
	return Mapping{}, nil
}

// Names returns the names of the open mappings of this package's kind that begin with
// prefix. The kernel records who made a mapping: names that others chose for mappings of
// another kind are not among them.
func (Kernel) Names(_ context.Context, prefix string) (names []string, err error) {
	all, err := filepath.Glob("/sys/block/dm-*/dm")
	if err != nil {
		return nil, err
	}
	for _, dir := range all {
		name, err := os.ReadFile(filepath.Join(dir, "name"))
		id, err2 := os.ReadFile(filepath.Join(dir, "uuid"))
		if err != nil || err2 != nil { // it was closed meanwhile
			continue
		}
		if n := strings.TrimSpace(string(name)); strings.HasPrefix(n, prefix) && isOwn(n, strings.TrimSpace(string(id))) {
			names = append(names, n)
		}
	}
	return names, nil
}

// isOwn reports whether cryptsetup has made the mapping, over a LUKS2 device: its UUID is
// then "CRYPT-LUKS2-", that of the device without dashes, "-" and the name
// (lib/internal.h, DM_UUID_PREFIX; lib/libdevmapper.c, dm_prepare_uuid).
func isOwn(name, uuid string) bool {
	device, ok := strings.CutPrefix(uuid, "CRYPT-LUKS2-")
	device, of, _ := strings.Cut(device, "-")
	return ok && len(device) == 32 && of == name
}

// isOver reports whether the only device in a slaves directory of sysfs is this one.
func isOver(slaves, device string) (bool, error) {
	if device == "" {
		return false, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(device, &st); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("stat %s: %w", device, err)
	}
	all, err := os.ReadDir(slaves)
	if err != nil || len(all) != 1 {
		return false, err
	}
	raw, err := os.ReadFile(filepath.Join(slaves, all[0].Name(), "dev"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // the device is gone
	}
	want := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	return strings.TrimSpace(string(raw)) == want, err
}

// Shred destroys the header of a device, and with it all content, except for the first
// 4 KiB, which identify it until the caller wipes them.
func (Kernel) Shred(device string) error {
	if err := shred(device); err != nil {
		return fmt.Errorf("destroy the header of %s: %w", device, err)
	}
	return nil
}

// Opens reports whether the key opens the device, without opening it.
func Opens(ctx context.Context, device string, key []byte) (bool, error) {
	_, err := cryptsetup(ctx, key, "open", "--test-passphrase", "--type", "luks2", "--key-file", "-", device)
	if command.Is(err, wrongKey) {
		return false, nil
	}
	return err == nil, err
}

// wrongKey is the exit status for "No key available with this passphrase"
// (cryptsetup(8), RETURN CODES).
const wrongKey syscall.Errno = 2

func cryptsetup(ctx context.Context, key []byte, action string, args ...string) ([]byte, error) {
	// An interrupted one leaves semaphores of udev, or a mapping without its node.
	x := command.Exe{Program: "cryptsetup", Args: append([]string{action}, args...), Verb: action, Timeout: timeout, Stays: true}
	if key != nil {
		x.Stdin = strings.NewReader(string(key))
	}
	out, err := command.Exec(ctx, x)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("cryptsetup is not installed on this node: install the package cryptsetup-bin")
	}
	return out, err //nolint:wrapcheck // it names the program
}
