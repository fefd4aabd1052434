package agent

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// moveStep is one idempotent step of a migration's source.
type moveStep string

const (
	moveNone    moveStep = ""
	movePrepare moveStep = "prepare" // have the target prepare
	moveCopy    moveStep = "copy"    // start to send
	moveAbort   moveStep = "abort"   // stop sending: the machine continues on the source
	moveDiscard moveStep = "discard" // have the target discard what it has
	moveSettle  moveStep = "settle"  // it has ended here: have the target resume it if all of it has arrived
	moveLost    moveStep = "lost"    // it has ended here and did not arrive: record that the guest did not end it
)

// arrival is what is known of a machine that has ended on the source.
type arrival int

const (
	arrivalUnknown arrival = iota
	arrived
	arrivedNot
)

// moveSeen is what the source has observed about a migration.
type moveSeen struct {
	domain     hypervisor.State // on the source
	sending    bool             // the hypervisor is sending
	prepared   bool             // the target has prepared, for this process
	refused    string           // why the migration cannot begin, for users
	waits      bool             // the target is fetching a medium
	copying    bool             // this process is sending
	done       bool             // this process has sent everything: it runs on the target
	err        string           // why sending failed, for users
	arrival    arrival
	copied     bool // the target has a disk of its own
	targetLost bool // according to the store nothing runs on the target
	unable     string
	progress   hypervisor.MigrationProgress
	downtime   time.Duration
}

// prepareAgain returns when the target is asked again. One that fetches a medium is
// asked once a second.
func prepareAgain(s moveSeen) time.Duration {
	if s.waits {
		return time.Second
	}
	return time.Millisecond
}

// moveDecision is a status to write, then a step to perform, then the end status to
// write if the step succeeded.
type moveDecision struct {
	status api.MigrationStatus
	step   moveStep
	end    *api.MigrationStatus
	again  time.Duration
}

// prepareTime is how long a target may be unreachable before the migration fails.
const prepareTime = time.Minute

// fetchTime is how long a target may take to fetch the media of the machine.
const fetchTime = time.Hour

// nextMove decides the source's next step. The source decides everything: as long
// as the domain exists there the machine is the source's, and the target resumes it
// only when it has ended on the source. Copying is committed before sending begins,
// so a process that finds a migration in Copying that nothing sends knows that it
// may have been sent, and checks.
//
//	         target ready          sent
//	Preparing ─────────► Copying ─────────────────────────────► Succeeded
//	    │                   │ killed, failed: ended here? ─ arrived ─┘
//	    ▼                   ▼          │ exists here, or not arrived
//	  Failed, Aborted ◄────────────────┘ (it continues here, or is started again)
//
// If the domain has ended on the source the target had all of it and may have
// resumed it. A disk that was copied is newer on the target from then on, whatever
// became of the machine: it never runs from the old one again.
//
// The planner assigns the instance to the target when it reads Succeeded; until
// then the source does nothing else for it. When the source is lost the target
// decides (migrationTarget.reconcile).
func nextMove(m api.Migration, in api.Instance, s moveSeen, now time.Time) moveDecision {
	st := m.Status
	stop, phase := stopMove(m, in)
	fail := func(why string) *api.MigrationStatus {
		end, t := st, now.UTC()
		end.Phase, end.EndedAt, end.LastError = api.MigrationFailed, &t, why
		if stop != "" {
			end.Phase, end.LastError = phase, stop
		}
		return &end
	}
	succeed := func() *api.MigrationStatus {
		end, t := st, now.UTC()
		end.Phase, end.EndedAt, end.LastError = api.MigrationSucceeded, &t, ""
		end.DowntimeMillis = s.downtime.Milliseconds()
		if end.TotalBytes > 0 {
			end.ProgressBytes = end.TotalBytes
		}
		return &end
	}
	switch st.Phase {
	case "", api.MigrationPending:
		switch {
		case stop != "" || s.unable != "":
			return moveDecision{status: *fail(s.unable)}
		case s.domain != hypervisor.Running:
			return moveDecision{status: *fail("the instance is not running")}
		}
		t := now.UTC()
		st.Phase, st.StartedAt = api.MigrationPreparing, &t
		return moveDecision{status: st, again: time.Millisecond}
	case api.MigrationPreparing:
		limit := prepareTime
		if s.waits {
			limit = fetchTime
		}
		waited := st.StartedAt != nil && now.Sub(*st.StartedAt) > limit
		switch {
		case stop != "" || s.unable != "":
			return moveDecision{status: st, step: moveDiscard, end: fail(s.unable)}
		case s.domain != hypervisor.Running:
			return moveDecision{status: st, step: moveDiscard, end: fail("the instance is not running any more")}
		case s.refused != "" || waited && !s.prepared:
			return moveDecision{status: st, step: moveDiscard, end: fail(orElse(s.refused, "the target does not respond"))}
		case !s.prepared:
			return moveDecision{status: st, step: movePrepare, again: prepareAgain(s)}
		}
		st.Phase = api.MigrationCopying
		return moveDecision{status: st, step: moveCopy, again: time.Second}
	case api.MigrationCopying:
		st.LastError = "" // the target may have written it while this node was lost
		if s.progress.TotalBytes > 0 {
			st.ProgressBytes, st.TotalBytes = s.progress.TransferredBytes, s.progress.TotalBytes
		}
		switch {
		case s.copying && stop != "":
			return moveDecision{status: m.Status, step: moveAbort, again: time.Second}
		case s.copying:
			return moveDecision{status: st, again: time.Second}
		case s.done:
			return moveDecision{status: st, step: moveSettle, end: succeed()}
		case s.sending, s.domain == hypervisor.Outgoing:
			return moveDecision{status: st, step: moveAbort, again: time.Millisecond}
		case s.domain != hypervisor.Missing:
			return moveDecision{status: st, step: moveDiscard, end: fail(orElse(s.err, "it was interrupted"))}
		case s.arrival == arrived:
			return moveDecision{status: *succeed()}
		case s.copied && (s.arrival == arrivedNot || s.targetLost):
			return moveDecision{status: *succeed()} // it is started again on the target
		case s.arrival == arrivedNot:
			return moveDecision{status: st, step: moveLost, end: fail("it was interrupted; the instance is started again")}
		case s.targetLost:
			return moveDecision{status: st, step: moveLost, end: fail("the target was lost; the instance is started again")}
		}
		return moveDecision{status: st, step: moveSettle, again: time.Second}
	}
	return moveDecision{status: st}
}

// stopMove returns why a migration of a running instance must not continue, and the phase
// in which it then ends.
func stopMove(m api.Migration, in api.Instance) (why string, end api.MigrationPhase) {
	why, end = stopMigration(m, in)
	if why == "" && (in.Spec.Power == api.PowerStopped || in.Assignment.Hold != "" || in.Spec.Restarts > in.Status.Restarts) {
		return "the instance was asked to stop or restart", api.MigrationFailed
	}
	return why, end
}

// stopMigration is stopMove for any migration. That a stopped instance is to start is no
// reason: it waits.
func stopMigration(m api.Migration, in api.Instance) (why string, end api.MigrationPhase) {
	switch {
	case m.Spec.Abort:
		return "aborted", api.MigrationAborted
	case m.Meta.DeletedAt != nil, m.Assignment.Phase.Ended(), in.Assignment.MigrateTo != m.Assignment.Target:
		return "the cluster ended the migration", api.MigrationFailed
	case in.Meta.DeletedAt != nil:
		return "the instance is being deleted", api.MigrationFailed
	}
	return "", ""
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
