package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// offlineStep is one idempotent step of the source of a migration of closed volumes: those
// of a stopped instance, or one without an instance.
type offlineStep string

const (
	offlineNone offlineStep = ""
	offlineHold offlineStep = "hold" // report Preparing, if the instance and its disks are as they must be: nothing of it starts or changes any more
	offlineStow offlineStep = "stow" // store the machine's state beside its root volume, so that it is copied with it
	offlineAsk  offlineStep = "ask"  // ask the target how far it is
)

// offlineSeen is what the source has observed about a migration of closed volumes.
type offlineSeen struct {
	domain hypervisor.State // of the instance, if there is one
	// stop is why the migration must end, for users, and stopPhase what it ends in.
	stop      string
	stopPhase api.MigrationPhase

	unable  string // why the migration is impossible, for users
	refused string // why it cannot continue, for users
	stowed  bool   // by this process, or there is no machine
	reply   CopyReply
	asked   bool          // reply is set
	total   int64         // bytes of the volumes
	still   time.Duration // since the target has made progress
}

// offlineDecision is a status to write, then a step to perform.
type offlineDecision struct {
	step   offlineStep
	status api.MigrationStatus
	again  time.Duration
}

// copyStall is how long a target may make no progress before the migration fails.
const copyStall = 15 * time.Minute

// nextOffline decides the source's next step. The instance, and its volumes, stay the
// source's until the planner reads Succeeded, which is reported when the target has
// synced copies of all volumes; before, the migration can fail at any moment without a
// consequence, and the target deletes what it has. From Preparing on the source neither
// starts the instance nor changes its volumes. The target begins to copy when it reads
// Copying: the root volume must have the machine's state by then.
//
//	      disks closed          state stored          target has all
//	Pending ─────► Preparing ─────────────► Copying ─────────────────► Succeeded
//	   │               │                       │
//	   └───────────────┴───────────────────────┴─► Failed, Aborted (nothing has changed)
func nextOffline(m api.Migration, s offlineSeen, now time.Time) offlineDecision {
	st := m.Status
	end := func(phase api.MigrationPhase, why string) offlineDecision {
		t := now.UTC()
		st.Phase, st.EndedAt, st.LastError = phase, &t, why
		return offlineDecision{status: st}
	}
	if st.Phase.Ended() {
		return offlineDecision{status: st}
	}
	limit := copyStall
	if s.reply.Waits != "" {
		limit = fetchTime
	}
	switch {
	case s.stop != "":
		return end(s.stopPhase, s.stop)
	case s.unable != "":
		return end(api.MigrationFailed, s.unable)
	case s.refused != "":
		return end(api.MigrationFailed, s.refused)
	case s.domain.Active():
		return end(api.MigrationFailed, "the instance is not stopped")
	case st.Phase == "" || st.Phase == api.MigrationPending:
		t := now.UTC()
		st.Phase, st.StartedAt = api.MigrationPreparing, &t
		return offlineDecision{step: offlineHold, status: st, again: time.Millisecond}
	case !s.stowed:
		return offlineDecision{step: offlineStow, status: st, again: time.Millisecond}
	case s.still > limit:
		return end(api.MigrationFailed, orElse(s.reply.Waits, "the target does not respond, or receives nothing"))
	case s.asked && s.reply.Complete:
		st.ProgressBytes, st.TotalBytes = s.total, s.total
		return end(api.MigrationSucceeded, "")
	}
	st.Phase, st.TotalBytes, st.LastError = api.MigrationCopying, s.total, s.reply.Waits
	st.ProgressBytes = min(max(s.reply.DoneBytes, 0), s.total)
	return offlineDecision{step: offlineAsk, status: st, again: time.Second}
}
