// Package rawdisk inspects and wipes disks for any use: OSDs of Ceph
// (sds/ceph/deploy) and local pools (sds/xfsdisk).
package rawdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// headBytes and tailBytes are the parts at a disk's two ends that are
// inspected and wiped: they contain partition tables, and the signatures of
// every file system and volume manager that blkid knows.
const (
	headBytes = 8 << 20
	tailBytes = 1 << 20
)

// labelCopies are the offsets at which later versions of BlueStore store
// copies of its label (src/os/bluestore/BlueStore.cc, bdev_label_positions).
var labelCopies = []int64{1 << 30, 10 << 30, 100 << 30, 1000 << 30}

// Ends returns the first 8 MiB and the last 1 MiB of a disk, which contain the
// signatures of its content.
func Ends(dev *os.File) (head, tail []byte, err error) {
	size, err := dev.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, nil, err
	}
	head, tail = make([]byte, min(size, headBytes)), make([]byte, min(size, tailBytes))
	if _, err := dev.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	_, err = dev.ReadAt(tail, size-int64(len(tail)))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, tail, err
}

// Zero reports whether all bytes are zero.
func Zero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

var zeros [64 << 10]byte

// InUse returns what uses a block device, or "". The kernel opens a device
// exclusively only if nothing else has it open exclusively, as mounts and the
// device mapper do.
func InUse(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil || st.Mode()&fs.ModeDevice == 0 {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return "it is in use on this node", nil
	}
	if err != nil {
		return "", err
	}
	return "", f.Close()
}

// Describe returns the content of a disk, in a few words.
func Describe(ctx context.Context, path string) string {
	out, err := command.Exec(ctx, command.Exe{
		Program: "blkid", Args: []string{"-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "value", path}, Verb: "-p", Timeout: 10 * time.Second,
	})
	if words := strings.Fields(string(out)); err == nil && len(words) > 0 {
		return "it contains " + strings.Join(words, ", ")
	}
	return "it contains data"
}

// Wipe removes the signatures of a disk's content. It does not change a disk
// that is in use.
func Wipe(path string) error {
	if who, err := InUse(path); err != nil || who != "" {
		return errors.Join(err, fmt.Errorf("%s: %s", path, who))
	}
	dev, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	size, err := dev.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// Backwards: as long as the first label exists it identifies the disk's
	// owner.
	clear := func(from, n int64) {
		for at := max(0, from); at < min(from+n, size) && err == nil; at += int64(len(zeros)) {
			_, err = dev.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
		}
	}
	clear(size-tailBytes, tailBytes)
	for _, at := range labelCopies {
		clear(at, 4096)
	}
	clear(int64(len(zeros)), headBytes-int64(len(zeros)))
	if err == nil {
		err = dev.Sync()
	}
	clear(0, int64(len(zeros)))
	return errors.Join(err, dev.Sync())
}
