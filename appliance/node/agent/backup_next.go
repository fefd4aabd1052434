package agent

import (
	"errors"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// backupStep is one idempotent step of a backup.
type backupStep string

const (
	backupNone   backupStep = ""
	backupWait   backupStep = "wait"
	backupRun    backupStep = "run"    // copy the volume, unless another copy runs
	backupDrop   backupStep = "drop"   // discard the result of the copy, which is started again
	backupCancel backupStep = "cancel" // cancel the running copy
	backupClean  backupStep = "clean"  // delete the snapshot it reads from, then write the status
	backupDelete backupStep = "delete" // delete the backup from the target
	backupForget backupStep = "forget" // remove the finalizer
)

const (
	runBackup    = "run"
	deleteBackup = "delete"
)

// backupSeen is what was observed about a backup.
type backupSeen struct {
	copy   copySeen
	volume bool       // the volume is ready and this node can read it
	gone   bool       // the volume does not exist any more, or is being deleted
	able   bool       // the volume's pool supports snapshots
	target api.Reason // why the target cannot be used yet; empty if it can
	now    time.Time
}

// backupDecision is the status to write, and the step to perform after that. For
// backupClean the order is reversed: the status is written when the step is done,
// and then the result of the copy is discarded.
type backupDecision struct {
	step   backupStep
	status api.BackupStatus
}

// nextBackup decides the next step. Running is reported before anything is created:
// after a crash the same ID is run again, and either finds its result or completes
// it.
//
//	              wait                copy               ends
//	Pending ────────────────► Running ────► (copied) ───────────► Succeeded
//	                             ▲              │ error             │
//	                             └── in use ────┴───────► Failed    │ delete
//	                                                        ▼       ▼
//	          nothing ◄── forget ◄── from the target ◄── Deleting ◄─┘ (cancels a copy)
//
// The copy reads a snapshot of the volume that has the backup's ID. The snapshot is
// deleted before the end is reported.
func nextBackup(b api.Backup, s backupSeen) backupDecision {
	st := b.Status
	of := api.Tried(b.Meta, b.Assignment)
	held, never := st.Retry.Left(of, s.now, retryHere)
	switch {
	case b.Meta.DeletedAt != nil:
		return endBackup(b, s)
	case st.Phase.Ended():
		return backupDecision{backupNone, st}
	case s.copy.running && s.gone:
		return backupDecision{backupCancel, st}
	case s.copy.running:
		st.ProgressBytes, st.TotalBytes = s.copy.progress.DoneBytes, max(s.copy.progress.TotalBytes, b.Spec.SizeBytes)
		return backupDecision{backupWait, st}
	case s.copy.ended && s.copy.err == nil:
		r := s.copy.result
		st.Phase, st.LastError, st.EndedAt, st.Retry = api.BackupSucceeded, "", &s.now, nil
		st.ProgressBytes, st.TotalBytes, st.AddedBytes = r.TotalBytes, r.TotalBytes, max(r.AddedBytes, 0)
		return backupDecision{backupClean, st}
	case s.copy.ended && temporary(s.copy.err):
		st.LastError, st.Cause = reasonOf(s.copy.err).Parts()
		st.Retry = st.Retry.After(b.Meta.ID, of, s.now, retryHere)
		return backupDecision{backupDrop, st}
	case s.copy.ended:
		st.Retry = nil
		return backupDecision{backupClean, failedBackup(st, reasonOf(s.copy.err), s.now)}
	case s.gone:
		return backupDecision{backupClean, failedBackup(st, volumeGone, s.now)}
	case !s.volume:
		return waitBackup(st, volumeNotReady)
	case !s.able:
		why := plainly(api.CauseNoSnapshots, "the volume's storage pool cannot keep snapshots, which a backup reads from")
		return backupDecision{backupNone, failedBackup(st, why, s.now)}
	case s.target.Text != "":
		return waitBackup(st, s.target)
	case held > 0 || never:
		return backupDecision{backupWait, st}
	}
	return backupDecision{backupRun, st}
}

// failedBackup returns the status of a backup that has failed for good.
func failedBackup(st api.BackupStatus, why api.Reason, now time.Time) api.BackupStatus {
	st.Phase, st.EndedAt = api.BackupFailed, &now
	st.LastError, st.Cause = why.Parts()
	return st
}

func waitBackup(st api.BackupStatus, why api.Reason) backupDecision {
	if st.Phase == "" {
		st.Phase = api.BackupPending
	}
	st.LastError, st.Cause = why.Parts()
	return backupDecision{backupWait, st}
}

// startBackup returns the status to write before the copy begins.
func startBackup(b api.Backup, now time.Time) api.BackupStatus {
	st := b.Status
	if st.StartedAt == nil {
		st.StartedAt = &now
	}
	st.Phase, st.TotalBytes, st.ProgressBytes = api.BackupRunning, b.Spec.SizeBytes, 0
	return st
}

// endBackup decides the next step of a backup that is being deleted. A running copy
// is cancelled first. A backup that never started has left nothing to delete.
func endBackup(b api.Backup, s backupSeen) backupDecision {
	st := b.Status
	if st.Phase != api.BackupDeleting {
		st.Phase, st.LastError, st.Retry = api.BackupDeleting, "", nil
	}
	switch {
	case s.copy.running && s.copy.what == runBackup:
		return backupDecision{backupCancel, st}
	case s.copy.running:
		return backupDecision{backupWait, st}
	case st.StartedAt == nil:
		return backupDecision{backupForget, st}
	case s.copy.ended && s.copy.what == deleteBackup && s.copy.err == nil:
		return backupDecision{backupForget, st}
	case s.copy.ended && s.copy.what == deleteBackup:
		st.LastError, st.Cause = reasonOf(s.copy.err).Parts()
		return backupDecision{backupDrop, st}
	}
	return backupDecision{backupDelete, st}
}

// temporary reports whether err is temporary: another task is using the target or the
// volume.
func temporary(err error) bool {
	return errors.Is(err, errLater) || api.CodeOf(err) == api.CodeInUse
}
