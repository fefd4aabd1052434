package agent

import (
	"errors"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// backupStep is one idempotent thing to do for a backup.
type backupStep string

const (
	backupNone   backupStep = ""
	backupWait   backupStep = "wait"
	backupRun    backupStep = "run"    // copy the volume, unless something else is copied
	backupDrop   backupStep = "drop"   // what became of the copy: it is begun again
	backupCancel backupStep = "cancel" // the copy that is under way
	backupClean  backupStep = "clean"  // delete what it reads from, then say the status
	backupDelete backupStep = "delete" // it, from the target
	backupForget backupStep = "forget" // finalizer off
)

const (
	runBackup    = "run"
	deleteBackup = "delete"
)

// backupSeen is what was found out about a backup.
type backupSeen struct {
	copy   copySeen
	volume bool   // it is made, and can be read here
	gone   bool   // the cluster knows the volume no more, or it is being deleted
	able   bool   // its pool keeps snapshots
	target string // why the target cannot be used yet; empty: it can
	now    time.Time
}

// backupDecision is what to say, and then a step; after backupClean it is said
// when that is done, and what became of the copy is forgotten.
type backupDecision struct {
	step   backupStep
	status api.BackupStatus
}

// nextBackup decides. Running is said before anything is made: whatever a
// crash leaves, the same id is run again, which finds or finishes it.
//
//	              wait                copy               ends
//	Pending ────────────────► Running ────► (copied) ───────────► Succeeded
//	                             ▲              │ error             │
//	                             └── in use ────┴───────► Failed    │ delete
//	                                                        ▼       ▼
//	          nothing ◄── forget ◄── from the target ◄── Deleting ◄─┘ (cancels a copy)
//
// What is read is a snapshot of the volume with the backup's id. It is gone
// before the end is said.
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
	case s.copy.ended && passes(s.copy.err):
		st.LastError, st.Retry = plainly(s.copy.err), st.Retry.After(b.Meta.ID, of, s.now, retryHere)
		return backupDecision{backupDrop, st}
	case s.copy.ended:
		st.Retry = nil
		st.Phase, st.LastError, st.EndedAt = api.BackupFailed, plainly(s.copy.err), &s.now
		return backupDecision{backupClean, st}
	case s.gone:
		st.Phase, st.LastError, st.EndedAt = api.BackupFailed, "its volume does not exist any more", &s.now
		return backupDecision{backupClean, st}
	case !s.volume:
		return waitBackup(st, "waiting for its volume")
	case !s.able:
		st.Phase, st.LastError, st.EndedAt = api.BackupFailed, "the volume's storage pool cannot keep snapshots, which a backup reads from", &s.now
		return backupDecision{backupNone, st}
	case s.target != "":
		return waitBackup(st, s.target)
	case held > 0 || never:
		return backupDecision{backupWait, st}
	}
	return backupDecision{backupRun, st}
}

func waitBackup(st api.BackupStatus, why string) backupDecision {
	if st.Phase == "" {
		st.Phase = api.BackupPending
	}
	st.LastError = why
	return backupDecision{backupWait, st}
}

// startBackup is what is said before the copy begins.
func startBackup(b api.Backup, now time.Time) api.BackupStatus {
	st := b.Status
	if st.StartedAt == nil {
		st.StartedAt = &now
	}
	st.Phase, st.TotalBytes, st.ProgressBytes = api.BackupRunning, b.Spec.SizeBytes, 0
	return st
}

// endBackup takes one away: what runs is cancelled first. One that never began
// has left nothing.
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
		st.LastError = plainly(s.copy.err)
		return backupDecision{backupDrop, st}
	}
	return backupDecision{backupDelete, st}
}

// passes reports whether an error is one of the moment: somebody else works on the
// target or the volume.
func passes(err error) bool {
	return errors.Is(err, errLater) || api.CodeOf(err) == api.CodeInUse
}
