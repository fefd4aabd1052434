package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup"
)

const (
	backupPoll  = 2 * time.Second  // how often a running copy is polled and its progress reported
	deleteRetry = 30 * time.Second // between attempts to delete from a target that does not answer
)

// backupReconciler creates and deletes backups of volumes that this node can read.
type backupReconciler struct {
	*core
	disks  *diskSet
	states *stateKeeper
	copies *copies
}

func (rec *backupReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	b, ok := get(rec.cache, rec.cache.backups, id)
	k := key(api.KindBackup, id)
	if !ok { // assigned to another node, or removed
		rec.copies.cancel(k)
		return 0, nil
	}
	if rec.o.Backups == nil || b.Meta.DeletedAt == nil && b.Status.Phase.Ended() {
		return 0, nil
	}
	v, s, err := rec.observe(ctx, b)
	if err != nil {
		return 0, err
	}
	d := nextBackup(b, s)
	if d.step == backupClean {
		return rec.clean(ctx, b, v, d.status)
	}
	if d.step == backupRun {
		return rec.begin(ctx, b, v)
	}
	if err := rec.writeStatus(ctx, b, d.status); err != nil {
		return 0, err
	}
	switch d.step {
	case backupWait:
		return backupPoll, nil
	case backupCancel:
		rec.copies.cancel(k)
		return time.Second, nil
	case backupDrop:
		rec.log.Info("backup is waiting", "id", id, "error", s.copy.err)
		rec.copies.discard(k)
		if s.copy.what == deleteBackup {
			return deleteRetry, nil
		}
		return backupPoll, nil
	case backupDelete:
		rec.copies.discard(k)
		return rec.delete(ctx, b, v)
	case backupForget:
		rec.copies.discard(k)
		return 0, rec.forget(ctx, api.KindBackup, id)
	}
	return 0, nil
}

// observe determines the state of the backup. v is its volume; it is zero if there
// is none.
func (rec *backupReconciler) observe(ctx context.Context, b api.Backup) (v api.Volume, s backupSeen, err error) {
	s.copy, s.now = rec.copies.state(key(api.KindBackup, b.Meta.ID)), rec.o.Now().UTC()
	v, there := get(rec.cache, rec.cache.volumes, string(b.Spec.Volume))
	if !there { // another node's, in a pool that this node can access too, or removed
		v, there, err = api.Find[api.Volume](ctx, rec.o.Store, api.KindVolume, string(b.Spec.Volume))
		if err != nil {
			return v, s, err
		}
	}
	s.gone = !there || v.Meta.DeletedAt != nil
	if p := rec.reaches(v); p != nil {
		s.volume, s.able = v.Status.Phase == api.VolumeReady && rec.pools.hasVolume(ctx, v), p.Capabilities().Snapshots
	}
	t, known := get(rec.cache, rec.cache.targets, string(b.Spec.Target))
	switch {
	case !known:
		s.target = plainly(api.CauseTargetGone, "its target is gone")
	case !prepared(t) && t.Status.LastError != "":
		s.target = about(api.CauseTargetUnavailable, "waiting for target", t.Meta.Name)
		s.target.Text += ": " + t.Status.LastError
	case !prepared(t):
		s.target = about(api.CauseTargetUnavailable, "waiting for target", t.Meta.Name)
	}
	return v, s, nil
}

// reaches returns the pool in which this node can read the volume, or nil if it
// cannot.
func (rec *backupReconciler) reaches(v api.Volume) sds.Driver {
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil || v.Assignment.Node == "" || v.Assignment.Node != rec.o.NodeID && !p.Capabilities().Shared {
		return nil
	}
	return p
}

// begin reports the backup as running and starts the copy, unless another copy
// runs.
func (rec *backupReconciler) begin(ctx context.Context, b api.Backup, v api.Volume) (time.Duration, error) {
	k := key(api.KindBackup, b.Meta.ID)
	if rec.copies.full() {
		return backupPoll, rec.writeStatus(ctx, b, waitBackup(b.Status, plainly(api.CauseBackupQueued, "waiting for another backup on its node")).status)
	}
	if err := rec.writeStatus(ctx, b, startBackup(b, rec.o.Now().UTC())); err != nil {
		return 0, err
	}
	t, ok := get(rec.cache, rec.cache.targets, string(b.Spec.Target))
	if !ok {
		return backupPoll, nil
	}
	rec.log.Info("backup started", "id", b.Meta.ID, "volume", v.Meta.ID, "target", t.Meta.ID)
	rec.copies.begin(ctx, k, runBackup, func(ctx context.Context, progress func(backup.Progress)) (backup.Result, error) {
		return rec.copyVolume(ctx, b, v, t, progress)
	})
	return backupPoll, nil
}

// backupSnapshot returns the ID of the snapshot that a backup reads from. No
// Snapshot object has this ID.
func backupSnapshot(id string) api.SnapshotID { return api.SnapshotID(id) }

// copyVolume copies v into the target from a snapshot, which is created unless an
// earlier attempt has left it.
func (rec *backupReconciler) copyVolume(ctx context.Context, b api.Backup, v api.Volume, t api.BackupTarget, progress func(backup.Progress)) (done backup.Result, err error) {
	p, err := rec.pools.driver(v.Assignment.Pool)
	if err != nil {
		return done, err
	}
	id := api.VolumeID(v.Meta.ID)
	if err := rec.disks.withVolume(ctx, v, func(access sds.Access) error {
		_, err := rec.states.snapshot(ctx, v, p, backupSnapshot(b.Meta.ID), access)
		return err
	}); err != nil {
		return done, err
	}
	r, err := p.OpenForReading(ctx, id, backupSnapshot(b.Meta.ID))
	if err != nil {
		return done, fmt.Errorf("open the snapshot of volume %s for backup %s: %w", id, b.Meta.ID, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	from, err := rec.disks.copied(ctx, v, r.Source, r.SizeBytes)
	if err != nil {
		return done, err
	}
	if from.MachineState, err = rec.states.ofSnapshot(ctx, p, sds.SnapshotRef{Volume: id, ID: backupSnapshot(b.Meta.ID)}); err != nil {
		return done, err
	}
	done, err = rec.o.Backups.Run(ctx, t, from, api.BackupID(b.Meta.ID), progress)
	return done, wrap(err, "copy volume %s to target %s as backup %s", id, t.Meta.ID, b.Meta.ID)
}

// clean deletes the snapshot that the backup read from, then writes the result st.
func (rec *backupReconciler) clean(ctx context.Context, b api.Backup, v api.Volume, st api.BackupStatus) (time.Duration, error) {
	k := key(api.KindBackup, b.Meta.ID)
	if c := rec.copies.state(k); c.err != nil {
		rec.log.Warn("backup failed", "id", b.Meta.ID, "volume", v.Meta.ID, "error", c.err)
	}
	if err := rec.dropReading(ctx, v, backupSnapshot(b.Meta.ID)); err != nil {
		return 0, err
	}
	if err := rec.writeStatus(ctx, b, st); err != nil {
		return 0, err
	}
	rec.copies.discard(k)
	return 0, nil
}

// dropReading deletes a snapshot that a backup read from, if this node can access
// the volume.
func (rec *backupReconciler) dropReading(ctx context.Context, v api.Volume, id api.SnapshotID) error {
	p := rec.reaches(v)
	if p == nil || !p.Capabilities().Snapshots {
		return nil
	}
	ref := sds.SnapshotRef{Volume: api.VolumeID(v.Meta.ID), ID: id}
	if err := findSnapshot(ctx, p, ref); api.CodeOf(err) == api.CodeNotFound {
		return rec.states.dropSnapshot(ctx, p, ref)
	} else if err != nil {
		return err
	}
	return rec.disks.withVolume(ctx, v, func(access sds.Access) error { return deleteSnapshot(ctx, p, ref, access) })
}

// delete deletes the snapshot that the backup read from, and starts deleting the
// backup from its target.
func (rec *backupReconciler) delete(ctx context.Context, b api.Backup, v api.Volume) (time.Duration, error) {
	if err := rec.dropReading(ctx, v, backupSnapshot(b.Meta.ID)); err != nil {
		return 0, err
	}
	t, ok := get(rec.cache, rec.cache.targets, string(b.Spec.Target))
	if !ok { // the target was removed with all its backups
		return 0, rec.forget(ctx, api.KindBackup, b.Meta.ID)
	}
	rec.copies.begin(ctx, key(api.KindBackup, b.Meta.ID), deleteBackup, func(ctx context.Context, _ func(backup.Progress)) (backup.Result, error) {
		return backup.Result{}, wrap(rec.o.Backups.Delete(ctx, t, api.BackupID(b.Meta.ID)), "delete backup %s from target %s", b.Meta.ID, t.Meta.ID)
	})
	return backupPoll, nil
}

func (rec *backupReconciler) writeStatus(ctx context.Context, b api.Backup, st api.BackupStatus) error {
	st.Cause = causeBeside(st.LastError, st.Cause)
	now, ok := get(rec.cache, rec.cache.backups, b.Meta.ID)
	if !ok || now.Assignment != b.Assignment || (now.Meta.DeletedAt == nil) != (b.Meta.DeletedAt == nil) {
		return errStale
	}
	if reflect.DeepEqual(now.Status, st) {
		return nil
	}
	return rec.report(ctx, api.KindBackup, b.Meta.ID, now.Meta.Revision, st)
}

// sweepReadings deletes snapshots that backups read from, of this node's own
// volumes, when the backup has ended, is another node's or was removed: a backup
// that was deleted while this node was unreachable has been ended by another node.
func (rec *backupReconciler) sweepReadings(ctx context.Context) error {
	var errs []error
	for _, v := range all(rec.cache, rec.cache.volumes) {
		if p := rec.reaches(v); p != nil && !p.Capabilities().Shared {
			errs = append(errs, rec.dropReadings(ctx, v, p))
		}
	}
	return errors.Join(errs...)
}

// dropReadings deletes the snapshots of v that ended backups read from.
func (rec *backupReconciler) dropReadings(ctx context.Context, v api.Volume, p sds.Driver) error {
	if !p.Capabilities().Snapshots {
		return nil
	}
	kind, _, _ := strings.Cut(api.NewID(api.KindBackup, make([]byte, 6)), "-")
	snapshots, err := p.Snapshots(ctx, api.VolumeID(v.Meta.ID))
	if api.CodeOf(err) == api.CodeNotFound {
		err = nil
	}
	errs := []error{wrap(err, "list the snapshots of volume %s", v.Meta.ID)}
	for _, s := range snapshots {
		if !strings.HasPrefix(string(s.ID), kind+"-") {
			continue
		}
		b, there, err := api.Find[api.Backup](ctx, rec.o.Store, api.KindBackup, string(s.ID))
		reads := there && !b.Status.Phase.Ended() && (b.Assignment.Node == rec.o.NodeID || p.Capabilities().Shared)
		if err != nil || reads {
			errs = append(errs, err)
			continue
		}
		rec.log.Warn("removing snapshot of ended backup", "volume", v.Meta.ID, "backup", s.ID)
		if err := rec.dropReading(ctx, v, s.ID); !errors.Is(err, errLater) {
			errs = append(errs, ignoreInUse(err))
		}
	}
	return errors.Join(errs...)
}

func percent(p backup.Progress) string { return fmt.Sprintf("%d%%", 100*p.DoneBytes/p.TotalBytes) }
