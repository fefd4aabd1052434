package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/backup"
)

// Backups keep volumes outside of their storage. Errors that a user may see are
// *api.Error; in_use: somebody else works on the target, ask again later.
type Backups interface {
	// Prepare a new target: make its repository where there is none.
	Prepare(ctx context.Context, t api.BackupTarget) error
	// Answers reports whether a target that was prepared is there; it makes nothing.
	Answers(ctx context.Context, t api.BackupTarget) error
	// Run backs the disk up as id; one that is there is not made again. After an
	// error nothing of it is there.
	Run(ctx context.Context, t api.BackupTarget, from backup.Disk, id api.BackupID, progress func(backup.Progress)) (backup.Result, error)
	// Restore a backup into a disk that is all zeros.
	Restore(ctx context.Context, t api.BackupTarget, id api.BackupID, into backup.Disk, progress func(backup.Progress)) error
	// Delete a backup; one that is not there is deleted.
	Delete(ctx context.Context, t api.BackupTarget, id api.BackupID) error
}

const (
	targetAgain = 30 * time.Second // one that does not answer
	targetEvery = 5 * time.Minute  // one that does
	targetLook  = time.Minute      // whether this node is the one that asks
)

// nextTarget is what to say of a target that was asked, err being its answer.
// observedGeneration is the last that was seen to work: once there is one, the
// repository was made, and one that is missing later is not mounted, or lost.
func nextTarget(t api.BackupTarget, err error) api.BackupTargetStatus {
	st := t.Status
	if err != nil {
		st.Phase, st.LastError = api.TargetFailed, plainly(err)
		return st
	}
	st.Phase, st.LastError, st.ObservedGeneration = api.TargetReady, "", max(t.Meta.Generation, 1)
	return st
}

// prepared reports whether the target has had its repository.
func prepared(t api.BackupTarget) bool { return t.Status.ObservedGeneration > 0 }

// backupTargetReconciler prepares backup targets and asks whether they answer.
type backupTargetReconciler struct {
	*core
	copies *copies
}

// reconcile asks a target whether it answers. One node does that for all,
// the one on duty: two that make one repository at once would spoil it.
func (rec *backupTargetReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	t, ok := get(rec.cache, rec.cache.targets, id)
	if !ok || rec.o.Backups == nil {
		return 0, nil
	}
	if !rec.members.onDuty() {
		return targetLook, nil
	}
	k, spec := key(api.KindBackupTarget, id), fmt.Sprintf("generation %d", t.Meta.Generation)
	switch c := rec.copies.look(k); {
	case c.running:
		return time.Second, nil
	case c.ended && c.what != spec: // it is another now
		rec.copies.take(k)
	case c.ended:
		if c.err != nil {
			rec.log.Warn("backup target is not reachable", "id", id, "error", c.err)
		}
		if st := nextTarget(t, c.err); st != t.Status {
			if err := rec.report(ctx, api.KindBackupTarget, id, t.Meta.Revision, st); err != nil {
				return 0, err
			}
		}
		rec.copies.take(k)
		if c.err != nil {
			return targetAgain, nil
		}
		return targetEvery, nil
	}
	rec.copies.begin(ctx, k, spec, func(ctx context.Context, _ func(backup.Progress)) (none backup.Result, err error) {
		if prepared(t) {
			return none, rec.o.Backups.Answers(ctx, t)
		}
		return none, rec.o.Backups.Prepare(ctx, t)
	})
	return time.Second, nil
}

// plainly is what a user is told: the domain error in the chain, not what a
// tool said, which is for the log.
func plainly(err error) string {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return "it failed; the node's log says why"
}
