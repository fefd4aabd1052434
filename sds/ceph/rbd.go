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

// Disks are RBD images. Every name of one here is a disk, or disk@snapshot.

const base = "base" // the snapshot of an image's disk that volumes are cloned from

// longTime is for commands that copy or delete a whole disk.
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

// newDisk is a name that nobody has, and that this process holds until it lets
// it go. The longest are 63+1+16+1+8+2 bytes, of the 95 that RBD allows.
func (d *Driver) newDisk(k kind, id string) (disk string, letGo func()) {
	return d.hold(string(k[:1]) + "." + id + "." + d.session + "." + strings.ToLower(rand.Text()[:8]))
}

// ownerOf a disk: what its name says that it was made for.
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

// cloneDisk reads from a protected snapshot what it has not written. Of the
// two forms of clones it is the first, in which the snapshot's protection is
// the one word on whether there may be clones: taking it away fails while
// there are, and cloning fails when it has been taken away, also in between.
func (d *Driver) cloneDisk(ctx context.Context, from, disk string) error {
	_, err := d.rbd(ctx, "clone", "--rbd-default-clone-format", "1", d.spec(from), d.spec(disk))
	return err
}

func (d *Driver) resizeDisk(ctx context.Context, disk string, bytes int64) error {
	_, err := d.rbd(ctx, "resize", "--no-progress", "--size", size(bytes), d.spec(disk))
	// It says EINVAL of a size that it has already.
	if command.Is(err, syscall.EINVAL) {
		if have, err := d.usage(ctx, disk); err == nil && have.bytes == bytes {
			return nil
		}
	}
	return err
}

// moment that another's command has a disk open for, more or less.
const moment = time.Second

// removals that are tried of one disk while others remove it, too.
const removals = 6

// removeDisk and the snapshots of it that nobody needs; one that is not there
// is fine. EBUSY: something reads from it, or has it open.
//
// Two that remove one disk at the same time refuse each other: each is a
// client that has it open (EBUSY), or finds it in the trash already (ESTALE).
// So whoever is refused looks whether that client stays, and tries again after
// a while that is not the other's. Broken off, the disk may lie in the trash,
// where this finds it by its name.
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

// snaps of a disk, the oldest first.
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

// keepSnap makes a snapshot and protects it. Broken off in between it is there
// and counts for nothing, until it is asked for again.
func (d *Driver) keepSnap(ctx context.Context, disk, name string) error {
	at := d.spec(disk) + "@" + name
	if _, err := d.rbd(ctx, "snap", "create", "--no-progress", at); err != nil && !command.Is(err, syscall.EEXIST) {
		return err
	}
	_, err := d.rbd(ctx, "snap", "protect", at)
	if command.Is(err, syscall.EBUSY) { // it is already
		return nil
	}
	return err
}

// removeSnap that has no clones: EBUSY when it has.
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

// children are the disks cloned from a snapshot, those in the trash, too.
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

// usage of a disk and its snapshots.
type usage struct {
	bytes     int64 // as large as it is
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

// decodeUsage by disk.
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

// madeAt is when a disk was made, by the cluster's clock.
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

// watchers are the addresses of clients that have a disk open for writing.
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

// lockers are the addresses of clients that hold the disk's lock, which who writes
// to it takes first and keeps, also when it is frozen.
func (d *Driver) lockers(ctx context.Context, disk string) ([]string, error) {
	raw, err := d.rbd(ctx, "lock", "ls", "--format", "json", d.spec(disk))
	if err != nil {
		return nil, err
	}
	return decodeLockers(raw)
}

func decodeLockers(raw []byte) ([]string, error) {
	var locks []struct{ Address string }
	if len(bytes.TrimSpace(raw)) == 0 { // no lock, as some versions print it
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

// clientAddress of "10.0.0.1:0/4711", or "[fd00::1]:0/4711", perhaps with
// "v1:" or "v2:" before it.
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

// open reports whether somebody has the disk open, and goes on having it: other
// nodes' commands do for a moment.
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
