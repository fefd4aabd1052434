package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

const labelMark = "bluestore block device\n"

// probe returns the content of a disk, or of a file used as one.
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
	head, tail, err := rawdisk.Ends(dev)
	switch {
	case errors.Is(err, unix.EIO):
		f.Content, f.What = Missing, "it is not readable"
		return f, nil
	case err != nil:
		return f, fmt.Errorf("read both ends of %s: %w", path, err)
	case bytes.HasPrefix(head, []byte(labelMark)):
		return probeLabel(ctx, fsid, f)
	}
	if f, ok := probeHeader(fsid, head, f); ok {
		return f, nil
	}
	if rawdisk.Zero(head) && rawdisk.Zero(tail) {
		if f.What, err = rawdisk.InUse(path); err != nil {
			return f, fmt.Errorf("query whether %s is in use: %w", path, err)
		}
		f.Content = Blank
		if f.What != "" {
			f.Content = Other
		}
		return f, nil
	}
	f.Content, f.What = Other, rawdisk.Describe(ctx, path)
	return f, nil
}

func probeLabel(ctx context.Context, fsid string, f Found) (Found, error) {
	out, err := command.Exec(ctx, command.Exe{Program: "ceph-bluestore-tool", Args: []string{"show-label", "--dev", f.Path}, Verb: "show-label"})
	var failed *command.Error
	if errors.As(err, &failed) {
		f.Content, f.What = Other, "a damaged OSD"
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the label of %s: %w", f.Path, err)
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
