package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// Backups stores copies of volumes outside of the volumes' own storage. Errors that
// a user may see are *api.Error; code in_use means that another task is using the
// target and the caller should retry later.
type Backups interface {
	// Prepare prepares a new target: it creates the repository if there is none.
	Prepare(ctx context.Context, t api.BackupTarget) error
	// Answers returns nil if a prepared target is available. It creates nothing.
	Answers(ctx context.Context, t api.BackupTarget) error
	// Run backs up the disk as id; a backup that exists already is not made again.
	// After an error no part of it is stored.
	Run(ctx context.Context, t api.BackupTarget, from backup.Disk, id api.BackupID, progress func(backup.Progress)) (backup.Result, error)
	// Restore writes a backup into a disk that is all zeros.
	Restore(ctx context.Context, t api.BackupTarget, id api.BackupID, into backup.Disk, progress func(backup.Progress)) error
	// MachineState returns the state of the machine that a backup of its root volume
	// has; nil: none.
	MachineState(ctx context.Context, t api.BackupTarget, id api.BackupID) ([]byte, error)
	// Delete deletes a backup; it returns nil if there is none.
	Delete(ctx context.Context, t api.BackupTarget, id api.BackupID) error
}

const (
	targetRetry    = 30 * time.Second // after a target has not answered
	targetInterval = 5 * time.Minute  // after a target has answered
	dutyInterval   = time.Minute      // how often a node checks whether it is on duty
)

// nextTarget returns the status of a target that was queried with the result err.
// ObservedGeneration is the last generation that worked: once it is set, the
// repository was created, and one that is missing later is not mounted, or lost.
func nextTarget(t api.BackupTarget, err error) api.BackupTargetStatus {
	st := t.Status
	if err != nil {
		st.Phase = api.TargetFailed
		st.LastError, st.Cause = reasonOf(err).Parts()
		return st
	}
	st.Phase, st.LastError, st.Cause, st.ObservedGeneration = api.TargetReady, "", api.Cause{}, max(t.Meta.Generation, 1)
	return st
}

// prepared reports whether the target's repository was created.
func prepared(t api.BackupTarget) bool { return t.Status.ObservedGeneration > 0 }

// backupTargetReconciler prepares backup targets and checks whether they answer.
type backupTargetReconciler struct {
	*core
	copies *copies
}

// reconcile queries a target. One node, the one on duty, does this for all: two
// that create one repository at once would corrupt it.
func (rec *backupTargetReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	t, ok := get(rec.cache, rec.cache.targets, id)
	if !ok || rec.o.Backups == nil {
		return 0, nil
	}
	if !rec.members.onDuty() {
		return dutyInterval, nil
	}
	k, spec := key(api.KindBackupTarget, id), fmt.Sprintf("generation %d", t.Meta.Generation)
	switch c := rec.copies.state(k); {
	case c.running:
		return time.Second, nil
	case c.ended && c.what != spec: // the target was changed since
		rec.copies.discard(k)
	case c.ended:
		if c.err != nil {
			rec.log.Warn("backup target is not reachable", "id", id, "error", c.err)
		}
		if st := nextTarget(t, c.err); st != t.Status {
			if err := rec.report(ctx, api.KindBackupTarget, id, t.Meta.Revision, st); err != nil {
				return 0, err
			}
		}
		rec.copies.discard(k)
		if c.err != nil {
			return targetRetry, nil
		}
		return targetInterval, nil
	}
	rec.copies.begin(ctx, k, spec, func(ctx context.Context, _ func(backup.Progress)) (none backup.Result, err error) {
		if prepared(t) {
			return none, wrap(rec.o.Backups.Answers(ctx, t), "query backup target %s", id)
		}
		return none, wrap(rec.o.Backups.Prepare(ctx, t), "prepare backup target %s", id)
	})
	return time.Second, nil
}
