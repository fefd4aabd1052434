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
	backupLook  = 2 * time.Second  // at a copy, which is also how often its progress is told
	deleteAgain = 30 * time.Second // from a target that does not answer
)

func (a *Agent) reconcileBackup(ctx context.Context, id string) (time.Duration, error) {
	b, ok := get(a.cache, a.cache.backups, id)
	k := key(api.KindBackup, id)
	if !ok { // another node's, or gone
		a.backups.cancel(k)
		return 0, nil
	}
	if a.o.Backups == nil || b.Meta.DeletedAt == nil && b.Status.Phase.Ended() {
		return 0, nil
	}
	v, s, err := a.lookBackup(ctx, b)
	if err != nil {
		return 0, err
	}
	d := nextBackup(b, s)
	if d.step == backupClean {
		return a.cleanBackup(ctx, b, v, d.status)
	}
	if d.step == backupRun {
		return a.beginBackup(ctx, b, v)
	}
	if err := a.sayBackup(ctx, b, d.status); err != nil {
		return 0, err
	}
	switch d.step {
	case backupWait:
		return backupLook, nil
	case backupCancel:
		a.backups.cancel(k)
		return time.Second, nil
	case backupDrop:
		a.log.Info("backup waits", "id", id, "error", s.copy.err)
		a.backups.take(k)
		if s.copy.what == deleteBackup {
			return deleteAgain, nil
		}
		return backupLook, nil
	case backupDelete:
		a.backups.take(k)
		return a.deleteBackup(ctx, b, v)
	case backupForget:
		a.backups.take(k)
		return 0, a.forget(ctx, api.KindBackup, id)
	}
	return 0, nil
}

// lookBackup finds out about the backup; v is its volume, where there is one.
func (a *Agent) lookBackup(ctx context.Context, b api.Backup) (v api.Volume, s backupSeen, err error) {
	s.copy, s.now = a.backups.look(key(api.KindBackup, b.Meta.ID)), a.o.Now().UTC()
	v, there := get(a.cache, a.cache.volumes, string(b.Spec.Volume))
	if !there { // another node's, in a pool that this one reaches too, or gone
		v, there, err = find[api.Volume](ctx, a.o.Store, api.KindVolume, string(b.Spec.Volume))
		if err != nil {
			return v, s, err
		}
	}
	s.gone = !there || v.Meta.DeletedAt != nil
	if p := a.reaches(v); p != nil {
		s.volume, s.able = v.Status.Phase == api.VolumeReady && a.pools.hasVolume(ctx, v), p.Capabilities().Snapshots
	}
	t, known := get(a.cache, a.cache.targets, string(b.Spec.Target))
	switch {
	case !known:
		s.target = "its target is gone"
	case !prepared(t) && t.Status.LastError != "":
		s.target = "waiting for target " + t.Meta.Name + ": " + t.Status.LastError
	case !prepared(t):
		s.target = "waiting for target " + t.Meta.Name
	}
	return v, s, nil
}

// reaches is the pool in which this node can read the volume; nil: it cannot.
func (a *Agent) reaches(v api.Volume) sds.Driver {
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil || v.Assignment.Node == "" || v.Assignment.Node != a.o.NodeID && !p.Capabilities().Shared {
		return nil
	}
	return p
}

// find an object that may not be this node's.
func find[T any](ctx context.Context, s Store, kind api.Kind, id string) (t T, there bool, err error) {
	o, err := s.Get(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	t, err = api.Decode[T](o)
	return t, err == nil, err
}

// beginBackup says that it runs and has it run, when nothing else does.
func (a *Agent) beginBackup(ctx context.Context, b api.Backup, v api.Volume) (time.Duration, error) {
	k := key(api.KindBackup, b.Meta.ID)
	if a.backups.full() {
		return backupLook, a.sayBackup(ctx, b, waitBackup(b.Status, "waiting for another backup on its node").status)
	}
	if err := a.sayBackup(ctx, b, startBackup(b, a.o.Now().UTC())); err != nil {
		return 0, err
	}
	t, ok := get(a.cache, a.cache.targets, string(b.Spec.Target))
	if !ok {
		return backupLook, nil
	}
	a.log.Info("backup", "id", b.Meta.ID, "volume", v.Meta.ID, "target", t.Meta.ID)
	a.backups.begin(ctx, k, runBackup, func(ctx context.Context, progress func(backup.Progress)) (backup.Result, error) {
		return a.copyVolume(ctx, b, v, t, progress)
	})
	return backupLook, nil
}

// reads is the snapshot that a backup reads from: no Snapshot object has its id.
func reads(id string) api.SnapshotID { return api.SnapshotID(id) }

// copyVolume into the target, from a snapshot that is made for it, or was by an
// earlier try.
func (a *Agent) copyVolume(ctx context.Context, b api.Backup, v api.Volume, t api.BackupTarget, progress func(backup.Progress)) (done backup.Result, err error) {
	p, err := a.pools.driver(v.Assignment.Pool)
	if err != nil {
		return done, err
	}
	id := api.VolumeID(v.Meta.ID)
	if err := a.withVolume(ctx, v, func(access sds.Access) error {
		_, err := p.CreateSnapshot(ctx, sds.SnapshotCreate{ID: reads(b.Meta.ID), Volume: id}, access)
		return err
	}); err != nil {
		return done, err
	}
	r, err := p.OpenForReading(ctx, id, reads(b.Meta.ID))
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	from, err := a.copied(ctx, v, r.Source, r.SizeBytes)
	if err != nil {
		return done, err
	}
	return a.o.Backups.Run(ctx, t, from, api.BackupID(b.Meta.ID), progress)
}

// copied is a disk of the volume with the keys that open it.
func (a *Agent) copied(ctx context.Context, v api.Volume, src sds.Source, bytes int64) (d backup.Disk, err error) {
	d = backup.Disk{Source: src, SizeBytes: bytes}
	if d.Encryption, err = a.encryption(ctx, v); err != nil {
		return d, err
	}
	if r := src.RBD; r != nil && r.User != "" {
		if a.o.Keys == nil {
			return d, api.Errorf(api.CodeUnavailable, "this node has no key of the Ceph cluster")
		}
		d.CephKey, err = a.o.Keys.Ceph(ctx, r.User)
	}
	return d, err
}

// cleanBackup takes away what the backup read from, and says how it went.
func (a *Agent) cleanBackup(ctx context.Context, b api.Backup, v api.Volume, st api.BackupStatus) (time.Duration, error) {
	k := key(api.KindBackup, b.Meta.ID)
	if c := a.backups.look(k); c.err != nil {
		a.log.Warn("backup failed", "id", b.Meta.ID, "volume", v.Meta.ID, "error", c.err)
	}
	if err := a.dropReading(ctx, v, reads(b.Meta.ID)); err != nil {
		return 0, err
	}
	if err := a.sayBackup(ctx, b, st); err != nil {
		return 0, err
	}
	a.backups.take(k)
	return 0, nil
}

// dropReading deletes a snapshot that a backup read from, where this node
// reaches the volume.
func (a *Agent) dropReading(ctx context.Context, v api.Volume, id api.SnapshotID) error {
	p := a.reaches(v)
	if p == nil || !p.Capabilities().Snapshots {
		return nil
	}
	if _, err := p.Snapshot(ctx, api.VolumeID(v.Meta.ID), id); api.CodeOf(err) == api.CodeNotFound {
		return nil
	} else if err != nil {
		return err
	}
	return a.withVolume(ctx, v, func(access sds.Access) error {
		return p.DeleteSnapshot(ctx, api.VolumeID(v.Meta.ID), id, access)
	})
}

// deleteBackup takes away what it read from, and has it deleted from the target.
func (a *Agent) deleteBackup(ctx context.Context, b api.Backup, v api.Volume) (time.Duration, error) {
	if err := a.dropReading(ctx, v, reads(b.Meta.ID)); err != nil {
		return 0, err
	}
	t, ok := get(a.cache, a.cache.targets, string(b.Spec.Target))
	if !ok { // with everything in it
		return 0, a.forget(ctx, api.KindBackup, b.Meta.ID)
	}
	a.backups.begin(ctx, key(api.KindBackup, b.Meta.ID), deleteBackup, func(ctx context.Context, _ func(backup.Progress)) (backup.Result, error) {
		return backup.Result{}, a.o.Backups.Delete(ctx, t, api.BackupID(b.Meta.ID))
	})
	return backupLook, nil
}

func (a *Agent) sayBackup(ctx context.Context, b api.Backup, st api.BackupStatus) error {
	now, ok := get(a.cache, a.cache.backups, b.Meta.ID)
	if !ok || now.Assignment != b.Assignment || (now.Meta.DeletedAt == nil) != (b.Meta.DeletedAt == nil) {
		return errStale
	}
	if reflect.DeepEqual(now.Status, st) {
		return nil
	}
	return a.report(ctx, api.KindBackup, b.Meta.ID, now.Meta.Revision, st)
}

// sweepReadings deletes snapshots that backups read from, of volumes of this
// node's own, when the backup has ended, is another node's or is gone: a backup
// that was deleted while this node was away has been ended by another.
func (a *Agent) sweepReadings(ctx context.Context) error {
	var errs []error
	for _, v := range all(a.cache, a.cache.volumes) {
		if p := a.reaches(v); p != nil && !p.Capabilities().Shared {
			errs = append(errs, a.dropReadings(ctx, v, p))
		}
	}
	return errors.Join(errs...)
}

// dropReadings of backups that are over.
func (a *Agent) dropReadings(ctx context.Context, v api.Volume, p sds.Driver) error {
	if !p.Capabilities().Snapshots {
		return nil
	}
	kind, _, _ := strings.Cut(api.NewID(api.KindBackup, make([]byte, 6)), "-")
	snapshots, err := p.Snapshots(ctx, api.VolumeID(v.Meta.ID))
	if api.CodeOf(err) == api.CodeNotFound {
		err = nil
	}
	errs := []error{err}
	for _, s := range snapshots {
		if !strings.HasPrefix(string(s.ID), kind+"-") {
			continue
		}
		b, there, err := find[api.Backup](ctx, a.o.Store, api.KindBackup, string(s.ID))
		reads := there && !b.Status.Phase.Ended() && (b.Assignment.Node == a.o.NodeID || p.Capabilities().Shared)
		if err != nil || reads {
			errs = append(errs, err)
			continue
		}
		a.log.Warn("removing a snapshot of a backup that is over", "volume", v.Meta.ID, "backup", s.ID)
		if err := a.dropReading(ctx, v, s.ID); !errors.Is(err, errLater) {
			errs = append(errs, ignoreInUse(err))
		}
	}
	return errors.Join(errs...)
}

func percent(p backup.Progress) string { return fmt.Sprintf("%d%%", 100*p.DoneBytes/p.TotalBytes) }

// restore makes the volume, which is not there, out of its backup: a copy that
// takes long. It says what it waits for; nothing: it is made.
func (a *Agent) restore(ctx context.Context, v api.Volume, p sds.Driver, want sds.VolumeCreate) (wait string, err error) {
	k := key(api.KindVolume, v.Meta.ID)
	switch c := a.restores.look(k); {
	case c.running && c.progress.TotalBytes > 0:
		return "restoring: " + percent(c.progress), nil
	case c.running:
		return "restoring", nil
	case c.ended:
		a.restores.take(k)
		if c.err != nil && !passes(c.err) {
			a.log.Warn("restore failed", "volume", v.Meta.ID, "backup", v.Spec.Backup, "error", c.err)
			return "", api.Errorf(api.CodeOf(c.err), "%s", plainly(c.err))
		}
		return "waiting for the backup target", nil
	}
	if a.o.Backups == nil {
		return "", api.Errorf(api.CodeUnavailable, "this node cannot restore backups")
	}
	b, there, err := find[api.Backup](ctx, a.o.Store, api.KindBackup, string(v.Spec.Backup))
	if err != nil {
		return "", err
	}
	t, known := get(a.cache, a.cache.targets, string(b.Spec.Target))
	if !there || !known {
		return "", api.Errorf(api.CodeNotFound, "backup %s is gone", v.Spec.Backup).WithHint("delete the volume and make another one")
	}
	a.log.Info("restore", "volume", v.Meta.ID, "backup", b.Meta.ID, "target", t.Meta.ID)
	a.restores.begin(ctx, k, "restore", func(ctx context.Context, progress func(backup.Progress)) (none backup.Result, err error) {
		want.Fill = func(ctx context.Context, into sds.Source) error {
			d, err := a.copied(ctx, v, into, want.SizeBytes)
			if err != nil {
				return err
			}
			return a.o.Backups.Restore(ctx, t, v.Spec.Backup, d, progress)
		}
		_, err = p.CreateVolume(ctx, want)
		return none, err
	})
	return "waiting to be restored", nil
}
