package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// A log is not removed with its object: another node may be creating the same
// object again at that moment, and late lines must find the earlier ones. It
// is removed a week later. Until then a key of a single object records it,
// because listing all objects of a pool takes too long:
//
//	basalt.deleted    omap: SECONDS.KIND.ID

const deleted = "basalt.deleted"

// mark records a log as one that may have to be removed. The log itself
// determines whether it has to be.
func (d *Driver) mark(ctx context.Context, k kind, id string) error {
	_, err := d.rados(ctx, nil, "setomapval", deleted, markOf(d.opt.Now(), k, id), "1")
	return err
}

// markOf returns a key that sorts by time.
func markOf(at time.Time, k kind, id string) string {
	return fmt.Sprintf("%012d.%s.%s", at.Unix(), k, id)
}

func parseMark(s string) (at time.Time, k kind, id string, ok bool) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) != 3 || parts[2] == "" {
		return time.Time{}, "", "", false
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	k = kind(parts[1])
	return time.Unix(seconds, 0), k, parts[2], err == nil && (k == volumes || k == images)
}

// removeOldLogs removes the logs of what was deleted long ago.
func (d *Driver) removeOldLogs(ctx context.Context) error {
	raw, err := d.rados(ctx, nil, "listomapkeys", deleted)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	var errs []error
	for key := range strings.Lines(string(raw)) {
		key = strings.TrimSuffix(key, "\n")
		at, k, id, ok := parseMark(key)
		if !ok {
			continue
		}
		if d.opt.Now().Sub(at) < abandoned { // all that follow are newer
			break
		}
		errs = append(errs, d.removeOldLog(ctx, k, id, key))
	}
	return errors.Join(append(errs, err)...)
}

// removeOldLog removes a log with its mark. It keeps the log of an object that
// exists again, or was deleted again since.
func (d *Driver) removeOldLog(ctx context.Context, k kind, id, mark string) error {
	s, err := d.read(ctx, k, id)
	if err != nil {
		return err
	}
	if s.made == nil && d.opt.Now().Sub(time.UnixMilli(s.last)) >= abandoned {
		if left, err := d.removeUnneeded(ctx, k, id, s); err != nil || left {
			return err
		}
		if _, err := d.rados(ctx, nil, "rm", k.object(id)); err != nil && !command.Is(err, syscall.ENOENT) {
			return err
		}
	}
	_, err = d.rados(ctx, nil, "rmomapkey", deleted, mark)
	return err
}

// removeUnneeded removes the disks that are not needed; left reports whether
// one of them is in use.
func (d *Driver) removeUnneeded(ctx context.Context, k kind, id string, s state) (left bool, err error) {
	over := s.over()
	if len(over) > 1 { // most of them are removed already; those in the trash are swept
		there, err := d.disks(ctx)
		if err != nil {
			return false, err
		}
		over = slices.DeleteFunc(over, func(disk string) bool { return !slices.Contains(there, disk) })
	}
	for _, disk := range over {
		switch err := d.removeDisk(ctx, disk); {
		case command.Is(err, syscall.EBUSY):
			left = true
		case err != nil:
			return left, err
		}
	}
	if k == images && s.made == nil && len(over) > 0 {
		err = d.deleteAgain(ctx, id, s)
	}
	return left, err
}

// deleteAgain deletes an image whose deletion was reverted, if the snapshot
// that volumes are created from was removed meanwhile.
func (d *Driver) deleteAgain(ctx context.Context, id string, was state) error {
	s, err := d.read(ctx, images, id)
	if err != nil || s.made == nil || !slices.Contains(was.past, s.made.Disk) {
		return err
	}
	snaps, err := d.snaps(ctx, s.made.Disk)
	if err != nil && !command.Is(err, syscall.ENOENT) || slices.ContainsFunc(snaps, func(s snap) bool { return s.Name == base && s.kept() }) {
		return err
	}
	_, err = d.remove(ctx, images, id)
	return err
}
