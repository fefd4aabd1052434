package agent

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// restore starts to create the volume from its backup, which takes long, and
// returns what it waits for.
func (rec *volumeReconciler) restore(ctx context.Context, v api.Volume, p sds.Driver, want sds.VolumeCreate) (wait api.Reason, err error) {
	k := key(api.KindVolume, v.Meta.ID)
	switch c := rec.restores.state(k); {
	case c.running && c.progress.TotalBytes > 0:
		return plainly(api.CauseRestoring, "restoring: "+percent(c.progress)), nil
	case c.running:
		return plainly(api.CauseRestoring, "restoring"), nil
	case c.ended:
		rec.restores.discard(k)
		if c.err != nil && !temporary(c.err) {
			rec.log.Warn("restore failed", "volume", v.Meta.ID, "backup", v.Spec.Backup, "error", c.err)
			why := reasonOf(c.err)
			return wait, api.Errorf(api.CodeOf(c.err), "%s", why.Text).Because(why.Cause, "")
		}
		return plainly(api.CauseTargetBusy, "waiting for the backup target"), nil
	}
	if rec.o.Backups == nil {
		return wait, api.Errorf(api.CodeUnavailable, "this node cannot restore backups")
	}
	b, there, err := api.Find[api.Backup](ctx, rec.o.Store, api.KindBackup, string(v.Spec.Backup))
	if err != nil {
		return wait, err
	}
	t, known := get(rec.cache, rec.cache.targets, string(b.Spec.Target))
	if !there || !known {
		return wait, api.Errorf(api.CodeNotFound, "backup %s does not exist", v.Spec.Backup).Because(api.Cause{Code: api.CauseBackupGone}, "").WithHint("delete the volume and create another one")
	}
	rec.log.Info("restore started", "volume", v.Meta.ID, "backup", b.Meta.ID, "target", t.Meta.ID)
	rec.restores.begin(ctx, k, "restore", func(ctx context.Context, progress func(backup.Progress)) (none backup.Result, err error) {
		want.Fill = func(ctx context.Context, into sds.Source) error {
			d, err := rec.disks.copied(ctx, v, into, want.SizeBytes)
			if err != nil {
				return err
			}
			return rec.o.Backups.Restore(ctx, t, v.Spec.Backup, d, progress)
		}
		if _, err = p.CreateVolume(ctx, want); err != nil || !rec.states.missing(ctx, v, p) {
			return none, wrap(err, "create volume %s from backup %s", v.Meta.ID, b.Meta.ID)
		}
		state, err := rec.o.Backups.MachineState(ctx, t, v.Spec.Backup)
		if err != nil {
			return none, fmt.Errorf("read the machine state of backup %s: %w", b.Meta.ID, err)
		}
		return none, rec.states.restored(ctx, v, p, state)
	})
	return plainly(api.CauseRestoring, "waiting to be restored"), nil
}
