package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// What is looked at, and wiped, at a disk's two ends: partition tables, and
// the signatures of every file system and volume manager that blkid knows lie
// there.
const (
	headBytes = 8 << 20
	tailBytes = 1 << 20
	labelMark = "bluestore block device\n"
)

// labelCopies are where later versions of BlueStore keep copies of its label
// (src/os/bluestore/BlueStore.cc, bdev_label_positions).
var labelCopies = []int64{1 << 30, 10 << 30, 100 << 30, 1000 << 30}

// probe returns what a disk, or a file in its place, holds.
func probe(ctx context.Context, fsid, path string) (Found, error) {
	f := Found{Path: path, ID: -1}
	dev, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOMEDIUM) {
		f.Content, f.What = Missing, err.Error()
		return f, nil
	}
	if err != nil {
		return f, err
	}
	defer dev.Close()
	head, tail, err := ends(dev)
	switch {
	case errors.Is(err, unix.EIO):
		f.Content, f.What = Missing, "it is not readable"
		return f, nil
	case err != nil:
		return f, err
	case bytes.HasPrefix(head, []byte(labelMark)):
		return probeLabel(ctx, fsid, f)
	case zero(head) && zero(tail):
		if f.What, err = inUse(path); err != nil {
			return f, err
		}
		f.Content = Blank
		if f.What != "" {
			f.Content = Other
		}
		return f, nil
	}
	f.Content, f.What = Other, describe(ctx, path)
	return f, nil
}

// ends of a disk.
func ends(dev *os.File) (head, tail []byte, err error) {
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

func zero(b []byte) bool {
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

// inUse says by whom a block device is held that shows nothing: the kernel
// opens one exclusively only when nobody else has it so, as mounts and device
// mapper do.
func inUse(path string) (string, error) {
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

func probeLabel(ctx context.Context, fsid string, f Found) (Found, error) {
	out, err := command.Exec(ctx, command.Exe{Program: "ceph-bluestore-tool", Args: []string{"show-label", "--dev", f.Path}, Verb: "show-label"})
	var failed *command.Error
	if errors.As(err, &failed) {
		f.Content, f.What = Other, "a damaged OSD"
		return f, nil
	}
	if err != nil {
		return f, err
	}
	l, err := decodeLabel(out)
	if err != nil {
		f.Content, f.What = Other, "a damaged OSD"
		return f, nil
	}
	f.UUID = l.UUID
	switch {
	case l.FSID != "" && l.FSID != fsid:
		f.Content, f.What = Other, "an OSD of another Ceph cluster, "+l.FSID
	case l.Done != "yes" || l.Whoami == "":
		f.Content = Begun
	default:
		f.Content = OSD
		if f.ID, err = strconv.Atoi(l.Whoami); err != nil {
			f.Content, f.What = Other, "a damaged OSD"
		}
	}
	return f, nil
}

type label struct {
	UUID   string `json:"osd_uuid"`
	FSID   string `json:"ceph_fsid"`
	Whoami string `json:"whoami"`
	Done   string `json:"mkfs_done"`
}

func decodeLabel(raw []byte) (label, error) {
	var all map[string]label
	if err := json.Unmarshal(raw, &all); err != nil {
		return label{}, fmt.Errorf("decode BlueStore label: %w", err)
	}
	for _, l := range all {
		if len(all) == 1 && uuidForm.MatchString(l.UUID) {
			return l, nil
		}
	}
	return label{}, errors.New("decode BlueStore label: it contains no UUID")
}

// describe what is on a disk, in a few words.
func describe(ctx context.Context, path string) string {
	out, err := command.Exec(ctx, command.Exe{
		Program: "blkid", Args: []string{"-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "value", path}, Verb: "-p", Timeout: 10 * time.Second,
	})
	if words := strings.Fields(string(out)); err == nil && len(words) > 0 {
		return "it contains " + strings.Join(words, ", ")
	}
	return "it contains data"
}

// wipe what says that there is something on a disk.
func wipe(path string) error {
	if who, err := inUse(path); err != nil || who != "" {
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
	// Backwards: while the first label stands it says whose the disk is.
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
