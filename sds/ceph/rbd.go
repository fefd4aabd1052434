package ceph

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// Disks are RBD images. Every name of one in this file is a disk, or
// disk@snapshot.

const base = "base" // the snapshot of an image's disk that volumes are cloned from

// longTime is the limit of commands that copy or delete a whole disk.
const longTime = 6 * time.Hour

func (d *Driver) rbd(ctx context.Context, args ...string) ([]byte, error) {
	return d.run(ctx, nil, "rbd", args...)
}

func (d *Driver) longRBD(ctx context.Context, args ...string) error {
	if err := d.may("rbd", nil, args); err != nil {
		return err
	}
	_, err := command.Runner{Conf: d.opt.Conf, User: d.opt.User, Timeout: longTime}.Run(ctx, nil, "rbd", append(args, "--no-progress")...)
	return d.explain(ctx, err)
}

func (d *Driver) spec(disk string) string { return d.opt.Pool + "/" + disk }

// newDisk returns a unique name, which this process holds until letGo is
// called. The longest has 63+1+16+1+8+2 bytes, of the 95 that RBD allows.
func (d *Driver) newDisk(k kind, id string) (disk string, letGo func()) {
	return d.hold(string(k[:1]) + "." + id + "." + d.session + "." + strings.ToLower(rand.Text()[:8]))
}

// ownerOf returns the object that a disk was created for, from its name.
func ownerOf(disk string) (k kind, id, session string, ok bool) {
	parts := strings.Split(disk, ".")
	if len(parts) < 4 {
		return "", "", "", false
	}
	switch parts[0] {
	case "i":
		k = images
	case "v":
		k = volumes
	default:
		return "", "", "", false
	}
	return k, parts[1], parts[2], true
}

func size(bytes int64) string { return strconv.FormatInt(bytes, 10) + "B" }

func (d *Driver) createDisk(ctx context.Context, disk string, bytes int64) error {
	_, err := d.rbd(ctx, "create", "--size", size(bytes), d.spec(disk))
	return err
}

// cloneDisk clones a protected snapshot, copied on write. It uses clones of
// format 1, in which the snapshot's protection alone determines whether there
// may be clones: removing it fails while there are any, and cloning fails when
// it has been removed, also in between.
func (d *Driver) cloneDisk(ctx context.Context, from, disk string) error {
	_, err := d.rbd(ctx, "clone", "--rbd-default-clone-format", "1", d.spec(from), d.spec(disk))
	return err
}

func (d *Driver) resizeDisk(ctx context.Context, disk string, bytes int64) error {
	_, err := d.rbd(ctx, "resize", "--no-progress", "--size", size(bytes), d.spec(disk))
	// rbd resize returns EINVAL for the present size.
	if command.Is(err, syscall.EINVAL) {
		if have, err := d.usage(ctx, disk); err == nil && have.bytes == bytes {
			return nil
		}
	}
	return err
}

// moment is about how long another node's command has a disk open.
const moment = time.Second

// removals limits the attempts to remove a disk while others remove it, too.
const removals = 6

// removeDisk removes a disk and its unneeded snapshots; a missing one is not
// an error. It returns EBUSY if a client reads from it, or has it open.
//
// Two processes that remove one disk at the same time block each other: each
// is a client that has it open (EBUSY), or finds it in the trash already
// (ESTALE). So on these errors it checks whether the client stays, and tries
// again after a random delay. After an interruption the disk may be in the
// trash, where this finds it by its name.
func (d *Driver) removeDisk(ctx context.Context, disk string) error {
	for try := 1; ; try++ {
		err := d.longRBD(ctx, "rm", d.spec(disk))
		switch {
		case err == nil || command.Is(err, syscall.ENOENT):
			return nil
		case try == removals:
			return err
		case command.Is(err, syscall.ENOTEMPTY):
			if err := d.removeSnaps(ctx, disk); err != nil && !command.Is(err, syscall.ENOENT) {
				return err
			}
			continue
		case command.Is(err, syscall.EBUSY):
			if stays, openErr := d.open(ctx, disk); stays {
				return err
			} else if openErr != nil && !command.Is(openErr, syscall.ENOENT) {
				return openErr
			}
		case !command.Is(err, syscall.ESTALE):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(mrand.N(moment)):
		}
	}
}

func (d *Driver) removeSnaps(ctx context.Context, disk string) error {
	snaps, err := d.snaps(ctx, disk)
	for _, s := range snaps {
		if err := d.removeSnap(ctx, disk, s.Name); err != nil {
			return err
		}
	}
	return err
}

type snap struct {
	ID        uint64
	Name      string
	Size      int64
	Protected string
	Timestamp string
}

// snaps returns the snapshots of a disk, the oldest first.
func (d *Driver) snaps(ctx context.Context, disk string) ([]snap, error) {
	raw, err := d.rbd(ctx, "snap", "ls", "--format", "json", d.spec(disk))
	if err != nil {
		return nil, err
	}
	return decodeSnaps(raw)
}

func decodeSnaps(raw []byte) ([]snap, error) {
	var all []snap
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("rbd snap ls: %w", err)
	}
	slices.SortFunc(all, func(a, b snap) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all, nil
}

// keepSnap creates and protects a snapshot. After an interruption in between
// it exists and does not count, until it is requested again.
func (d *Driver) keepSnap(ctx context.Context, disk, name string) error {
	at := d.spec(disk) + "@" + name
	if _, err := d.rbd(ctx, "snap", "create", "--no-progress", at); err != nil && !command.Is(err, syscall.EEXIST) {
		return err
	}
	_, err := d.rbd(ctx, "snap", "protect", at)
	if command.Is(err, syscall.EBUSY) { // already protected
		return nil
	}
	return err
}

// removeSnap removes a snapshot without clones: EBUSY if it has any.
func (d *Driver) removeSnap(ctx context.Context, disk, name string) error {
	at := d.spec(disk) + "@" + name
	_, err := d.rbd(ctx, "snap", "unprotect", at)
	if err != nil && !command.Is(err, syscall.EINVAL) && !command.Is(err, syscall.ENOENT) { // EINVAL: it is not protected
		return err
	}
	_, err = d.rbd(ctx, "snap", "rm", "--no-progress", at)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

type child struct {
	Image string
	Trash bool
}

// children returns the disks cloned from a snapshot, including those in the
// trash.
func (d *Driver) children(ctx context.Context, disk, name string) ([]child, error) {
	raw, err := d.rbd(ctx, "children", "--all", "--format", "json", d.spec(disk)+"@"+name)
	if err != nil {
		return nil, err
	}
	var all []child
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("rbd children: %w", err)
	}
	return all, nil
}

// usage is the size and space of a disk and its snapshots.
type usage struct {
	bytes     int64 // virtual size
	allocated int64
}

func (d *Driver) usage(ctx context.Context, disk string) (usage, error) {
	raw, err := d.rbd(ctx, "du", "--format", "json", d.spec(disk))
	if err != nil {
		return usage{}, err
	}
	all, err := decodeUsage(raw)
	if _, ok := all[disk]; err == nil && !ok {
		err = fmt.Errorf("rbd du: output does not contain %s", disk)
	}
	return all[disk], err
}

// decodeUsage decodes the usage by disk.
func decodeUsage(raw []byte) (map[string]usage, error) {
	var du struct {
		Images []struct {
			Name, Snapshot string
			Provisioned    int64 `json:"provisioned_size"`
			Used           int64 `json:"used_size"`
		}
	}
	if err := json.Unmarshal(raw, &du); err != nil {
		return nil, fmt.Errorf("rbd du: %w", err)
	}
	all := map[string]usage{}
	for _, i := range du.Images {
		u := all[i.Name]
		u.allocated += max(0, i.Used)
		if i.Snapshot == "" {
			u.bytes = i.Provisioned
		}
		all[i.Name] = u
	}
	return all, nil
}

// madeAt returns when a disk was created, by the cluster's clock.
func (d *Driver) madeAt(ctx context.Context, disk string) (time.Time, error) {
	raw, err := d.rbd(ctx, "info", "--format", "json", d.spec(disk))
	if err != nil {
		return time.Time{}, err
	}
	var info struct {
		Created string `json:"create_timestamp"`
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return time.Time{}, fmt.Errorf("rbd info: %w", err)
	}
	at, err := time.ParseInLocation(time.ANSIC, info.Created, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("rbd info: %w", err)
	}
	return at, nil
}

// watchers returns the addresses of clients that have a disk open for writing.
func (d *Driver) watchers(ctx context.Context, disk string) ([]string, error) {
	raw, err := d.rbd(ctx, "status", "--format", "json", d.spec(disk))
	if err != nil {
		return nil, err
	}
	return decodeWatchers(raw)
}

func decodeWatchers(raw []byte) ([]string, error) {
	var status struct {
		Watchers []struct{ Address string }
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return nil, fmt.Errorf("rbd status: %w", err)
	}
	var all []string
	for _, w := range status.Watchers {
		if _, err := clientAddress(w.Address); err != nil {
			return nil, err
		}
		all = append(all, w.Address)
	}
	return all, nil
}

// lockers returns the addresses of clients that hold the disk's lock, which a
// writer acquires first and keeps, also while it is frozen.
func (d *Driver) lockers(ctx context.Context, disk string) ([]string, error) {
	raw, err := d.rbd(ctx, "lock", "ls", "--format", "json", d.spec(disk))
	if err != nil {
		return nil, err
	}
	return decodeLockers(raw)
}

func decodeLockers(raw []byte) ([]string, error) {
	var locks []struct{ Address string }
	if len(bytes.TrimSpace(raw)) == 0 { // some versions print nothing without a lock
		return nil, nil
	}
	if err := json.Unmarshal(raw, &locks); err != nil {
		return nil, fmt.Errorf("rbd lock ls: %w", err)
	}
	var all []string
	for _, l := range locks {
		if _, err := clientAddress(l.Address); err != nil {
			return nil, err
		}
		all = append(all, l.Address)
	}
	return all, nil
}

// clientAddress parses "10.0.0.1:0/4711" or "[fd00::1]:0/4711", optionally
// with the prefix "v1:" or "v2:".
func clientAddress(s string) (netip.Addr, error) {
	for _, p := range []string{"v1:", "v2:", "any:"} {
		s = strings.TrimPrefix(s, p)
	}
	at, _, ok := strings.Cut(s, "/")
	ap, err := netip.ParseAddrPort(at)
	if err != nil || !ok {
		return netip.Addr{}, errors.Join(fmt.Errorf("invalid client address: %.80q", s), err)
	}
	return ap.Addr(), nil
}

// open reports whether a client has the disk open and keeps it open: other
// nodes' commands have it open for a moment.
func (d *Driver) open(ctx context.Context, disk string) (bool, error) {
	var before []string
	since := d.opt.Now()
	for {
		now, err := d.watchers(ctx, disk)
		if err != nil || len(now) == 0 {
			return false, err
		}
		if !slices.ContainsFunc(now, func(w string) bool { return slices.Contains(before, w) }) {
			before, since = now, d.opt.Now()
		} else if d.opt.Now().Sub(since) >= d.opt.Patience {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(min(moment, d.opt.Patience) / 3):
		}
	}
}
