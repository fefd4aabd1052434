package agent

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestNextMove(t *testing.T) {
	began := t0.Add(-time.Second)
	long := t0.Add(-2 * prepareTime)
	for _, c := range []struct {
		name  string
		phase api.MigrationPhase
		s     moveSeen
		began time.Time
		abort bool
		step  moveStep
		now   api.MigrationPhase // reported before the step
		end   api.MigrationPhase // reported after it
	}{
		{name: "begins", s: moveSeen{domain: hypervisor.Running}, now: api.MigrationPreparing},
		{name: "does not run", s: moveSeen{domain: hypervisor.Stopped}, now: api.MigrationFailed},
		{name: "a vGPU", s: moveSeen{domain: hypervisor.Running, unable: "vGPU"}, now: api.MigrationFailed},
		{name: "aborted at once", abort: true, s: moveSeen{domain: hypervisor.Running}, now: api.MigrationAborted},
		{name: "prepares", phase: api.MigrationPreparing, s: moveSeen{domain: hypervisor.Running}, step: movePrepare, now: api.MigrationPreparing},
		{name: "says that it copies first", phase: api.MigrationPreparing, s: moveSeen{domain: hypervisor.Running, prepared: true}, step: moveCopy, now: api.MigrationCopying},
		{name: "target refuses", phase: api.MigrationPreparing, s: moveSeen{domain: hypervisor.Running, refused: "full"}, step: moveDiscard, now: api.MigrationPreparing, end: api.MigrationFailed},
		{name: "target silent", phase: api.MigrationPreparing, began: long, s: moveSeen{domain: hypervisor.Running}, step: moveDiscard, now: api.MigrationPreparing, end: api.MigrationFailed},
		{name: "target fetches media", phase: api.MigrationPreparing, began: long, s: moveSeen{domain: hypervisor.Running, waits: true}, step: movePrepare, now: api.MigrationPreparing},
		{name: "target fetches media for too long", phase: api.MigrationPreparing, began: t0.Add(-2 * fetchTime), s: moveSeen{domain: hypervisor.Running, waits: true}, step: moveDiscard, now: api.MigrationPreparing, end: api.MigrationFailed},
		{name: "copies", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Running, copying: true}, now: api.MigrationCopying},
		{name: "copies, aborted", abort: true, phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Running, copying: true}, step: moveAbort, now: api.MigrationCopying},
		{name: "sent", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, done: true}, step: moveSettle, now: api.MigrationCopying, end: api.MigrationSucceeded},
		{name: "sent, too late to abort", abort: true, phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, done: true}, step: moveSettle, now: api.MigrationCopying, end: api.MigrationSucceeded},
		{name: "somebody else still sends", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Running, sending: true}, step: moveAbort, now: api.MigrationCopying},
		{name: "stands still", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Outgoing}, step: moveAbort, now: api.MigrationCopying},
		{name: "failed", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Running, err: "no"}, step: moveDiscard, now: api.MigrationCopying, end: api.MigrationFailed},
		{name: "aborted", abort: true, phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Running, err: "no"}, step: moveDiscard, now: api.MigrationCopying, end: api.MigrationAborted},
		{name: "gone, ask", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing}, step: moveSettle, now: api.MigrationCopying},
		{name: "gone, arrived", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, arrival: arrived}, now: api.MigrationSucceeded},
		{name: "gone, not arrived", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, arrival: arrivedNot}, step: moveLost, now: api.MigrationCopying, end: api.MigrationFailed},
		{name: "gone with its target", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, targetLost: true}, step: moveLost, now: api.MigrationCopying, end: api.MigrationFailed},
		{name: "gone, its copied disk is newer there", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, arrival: arrivedNot, copied: true}, now: api.MigrationSucceeded},
		{name: "gone with its target, and with its copied disk", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, targetLost: true, copied: true}, now: api.MigrationSucceeded},
		{name: "gone and arrived before its target was lost", phase: api.MigrationCopying, s: moveSeen{domain: hypervisor.Missing, arrival: arrived, targetLost: true}, now: api.MigrationSucceeded},
	} {
		m := api.Migration{Spec: api.MigrationSpec{Abort: c.abort}, Assignment: api.MigrationAssignment{Phase: api.MigrationPreparing, Source: "a", Target: "b"},
			Status: api.MigrationStatus{Phase: c.phase}}
		if c.phase != "" {
			m.Status.StartedAt = &began
		}
		if !c.began.IsZero() {
			m.Status.StartedAt = &c.began
		}
		d := nextMove(m, api.Instance{Assignment: api.InstanceAssignment{Node: "a", MigrateTo: "b"}}, c.s, t0)
		var end api.MigrationPhase
		if d.end != nil {
			end = d.end.Phase
		}
		if d.step != c.step || d.status.Phase != c.now || end != c.end {
			t.Errorf("%s: step %q, phase %s then %q; want %q, %s, %q", c.name, d.step, d.status.Phase, end, c.step, c.now, c.end)
		}
		if !d.status.Phase.Ended() && d.end == nil && d.again == 0 {
			t.Errorf("%s: decision %+v has no end and no next reconcile, want one", c.name, d)
		}
	}
}
