package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// readMark is the prefix of snapshots and clones for readers.
const readMark = "read."

// kept reports whether it is a complete snapshot that was requested by a user.
func (s snap) kept() bool { return s.Protected == "true" && !strings.HasPrefix(s.Name, readMark) }

func (s snap) public(v api.VolumeID, luks int64) (sds.Snapshot, error) {
	at, err := s.madeAt()
	if err != nil {
		return sds.Snapshot{}, fmt.Errorf("snapshot %s of volume %s: %w", s.Name, v, err)
	}
	return sds.Snapshot{ID: api.SnapshotID(s.Name), Volume: v, SizeBytes: s.Size - luks, CreatedAt: at, Ready: true}, nil
}

func (s snap) madeAt() (time.Time, error) {
	at, err := time.ParseInLocation(time.ANSIC, s.Timestamp, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse creation time: %w", err)
	}
	return at, nil
}

// CreateSnapshot implements sds.Driver. RBD creates it atomically, also of a
// disk that a machine writes to; it counts once it is protected.
func (d *Driver) CreateSnapshot(ctx context.Context, c sds.SnapshotCreate, a sds.Access) (sds.Snapshot, error) {
	unlock, err := d.lockVolume(ctx, c.Volume, c.Validate())
	if err != nil {
		return sds.Snapshot{}, err
	}
	defer unlock()
	s, err := d.find(ctx, volumes, string(c.Volume))
	if err != nil {
		return sds.Snapshot{}, err
	}
	if err := d.checkKey(ctx, c.Volume, s, a, ""); err != nil {
		return sds.Snapshot{}, err
	}
	if a.Live == nil {
		if err := d.closed(ctx, c.Volume, s); err != nil {
			// An existing snapshot does not require the volume to be closed.
			have, without := d.snapshot(ctx, c.Volume, c.ID, s)
			if without == nil {
				return have, nil
			}
			return sds.Snapshot{}, err
		}
	}
	// An existing snapshot is left unchanged.
	err = d.keepSnap(ctx, s.made.Disk, string(c.ID))
	if command.Is(err, syscall.ENOENT) {
		return sds.Snapshot{}, volumes.notFound(string(c.Volume))
	}
	if err != nil {
		return sds.Snapshot{}, err
	}
	return d.snapshot(ctx, c.Volume, c.ID, s)
}

// snapshot returns a snapshot of an existing volume.
func (d *Driver) snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, s state) (sds.Snapshot, error) {
	all, err := d.snapshots(ctx, v, s)
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return sds.Snapshot{}, errors.Join(err, sds.SnapshotNotFound(v, id))
}

func (d *Driver) snapshots(ctx context.Context, v api.VolumeID, s state) ([]sds.Snapshot, error) {
	snaps, err := d.snaps(ctx, s.made.Disk)
	if command.Is(err, syscall.ENOENT) {
		return nil, volumes.notFound(string(v))
	}
	var all []sds.Snapshot
	for _, one := range snaps {
		if one.kept() {
			said, bad := one.public(v, s.made.LUKSBytes)
			all, err = append(all, said), errors.Join(err, bad)
		}
	}
	return all, err
}

// Snapshot implements sds.Driver.
func (d *Driver) Snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID) (sds.Snapshot, error) {
	if err := (sds.SnapshotRef{Volume: v, ID: id}).Validate(); err != nil {
		return sds.Snapshot{}, err
	}
	s, err := d.find(ctx, volumes, string(v))
	if err != nil {
		return sds.Snapshot{}, err
	}
	return d.snapshot(ctx, v, id, s)
}

// Snapshots implements sds.Driver.
func (d *Driver) Snapshots(ctx context.Context, v api.VolumeID) ([]sds.Snapshot, error) {
	if err := sds.CheckID(string(v)); err != nil {
		return nil, err
	}
	s, err := d.find(ctx, volumes, string(v))
	if err != nil {
		return nil, err
	}
	return d.snapshots(ctx, v, s)
}

// DeleteSnapshot implements sds.Driver.
func (d *Driver) DeleteSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, _ sds.Access) error {
	ref := sds.SnapshotRef{Volume: v, ID: id}
	unlock, err := d.lockVolume(ctx, v, ref.Validate())
	if err != nil {
		return err
	}
	defer unlock()
	s, err := d.read(ctx, volumes, string(v))
	if err != nil || s.made == nil {
		return err
	}
	err = d.removeSnap(ctx, s.made.Disk, string(id))
	if command.Is(err, syscall.EBUSY) {
		clones, err := d.clones(ctx, s.made.Disk, string(id))
		if err != nil || len(clones) > 0 {
			return errors.Join(err, inUse(ref, clones))
		}
		if err := d.removeSnap(ctx, s.made.Disk, string(id)); err != nil {
			return err
		}
		return d.dropSnapshotState(ctx, ref)
	}
	if err != nil {
		return err
	}
	return d.dropSnapshotState(ctx, ref)
}

// inUse returns the error for a snapshot with clones.
func inUse(ref sds.SnapshotRef, clones []string) error {
	for _, disk := range clones {
		if _, id, _, ok := ownerOf(disk); ok {
			return sds.HasClones(ref, api.VolumeID(id))
		}
	}
	return sds.BeingRead(ref)
}

// RollbackVolume implements sds.Driver. RBD copies the differences, which
// takes time: the log records that it has started, and the volume cannot be
// claimed until it has ended. After an interruption it is repeated.
func (d *Driver) RollbackVolume(ctx context.Context, v api.VolumeID, id api.SnapshotID, count int64, a sds.Access) (sds.Volume, error) {
	unlock, err := d.lockVolume(ctx, v, (sds.SnapshotRef{Volume: v, ID: id}).Validate())
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	s, err := d.find(ctx, volumes, string(v))
	if err != nil {
		return sds.Volume{}, err
	}
	have, err := d.volume(ctx, v, s)
	if err != nil {
		return sds.Volume{}, err
	}
	if again, err := have.MustRollBack(count); err != nil || !again {
		return have, err
	}
	snaps, err := d.snaps(ctx, s.made.Disk)
	if command.Is(err, syscall.ENOENT) {
		return sds.Volume{}, volumes.notFound(string(v))
	}
	at := slices.IndexFunc(snaps, func(one snap) bool { return one.kept() && one.Name == string(id) })
	switch {
	case err != nil:
		return sds.Volume{}, err
	case at < 0:
		return sds.Volume{}, sds.SnapshotNotFound(v, id)
	}
	if err := errors.Join(d.checkKey(ctx, v, s, a, ""), d.reading(v, snaps)); err != nil {
		return sds.Volume{}, err
	}
	if err := d.closed(ctx, v, s); err != nil {
		return sds.Volume{}, err
	}
	if s.pending == nil || s.pending.Count < count {
		bytes := have.SizeBytes + s.made.LUKSBytes
		if s.pending != nil { // of an earlier one that was interrupted
			bytes = max(bytes, s.pending.SizeBytes)
		}
		if s, err = d.write(ctx, volumes, string(v), record{Do: rollback, Count: count, Snapshot: id, SizeBytes: bytes}); err != nil {
			return sds.Volume{}, err
		}
	}
	if s.made == nil || s.pending == nil || s.pending.Count != count || s.pending.Snapshot != id {
		return sds.Volume{}, api.Errorf(api.CodeState, "another rollback of volume %s has started", v)
	}
	if err := d.rollBack(ctx, s.made.Disk, snaps[at], s.pending.SizeBytes); err != nil {
		return sds.Volume{}, err
	}
	if s, err = d.write(ctx, volumes, string(v), record{Do: rolled, Count: count}); err != nil {
		return sds.Volume{}, err
	}
	if s.made == nil {
		return sds.Volume{}, volumes.notFound(string(v))
	}
	return d.volume(ctx, v, s)
}

// rollBack rolls a disk back, which gives it the snapshot's size, and restores
// its own size.
func (d *Driver) rollBack(ctx context.Context, disk string, to snap, size int64) error {
	if err := d.longRBD(ctx, "snap", "rollback", d.spec(disk)+"@"+to.Name); err != nil || to.Size == size {
		return err
	}
	return d.resizeDisk(ctx, disk, size)
}
