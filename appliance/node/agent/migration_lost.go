package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// surely is how long an arriving machine must be observed running until that is
// trusted: a libvirtd that has just started takes one that still receives its
// memory for running, until it has checked it.
const surely = 2 * time.Second

// noteArrival records that a machine which arrived here was resumed. Only its
// source does that, after it has released the machine. again is when to check once
// more, 0 if there is no need.
func (t *migrationTarget) noteArrival(ctx context.Context, m api.Migration) (again time.Duration, err error) {
	id := m.Spec.Instance
	run, err := t.files.readRun(id)
	if err != nil || run.Left || run.Incoming != api.MigrationID(m.Meta.ID) {
		return 0, err
	}
	s, err := t.domain.status(ctx, id)
	if err != nil {
		return 0, err
	}
	now := t.o.Now()
	t.mu.Lock()
	first, seen := t.arrived[string(id)]
	switch runs := s.State == hypervisor.Running || s.State == hypervisor.Paused; {
	case !runs:
		delete(t.arrived, string(id))
	case !seen:
		t.arrived[string(id)] = now
	}
	t.mu.Unlock()
	switch {
	case s.State != hypervisor.Running && s.State != hypervisor.Paused:
		return 0, nil
	case !seen || now.Sub(first) < surely:
		return surely / 2, nil
	}
	run.Left = true
	return 0, t.files.writeRun(id, run)
}

// arrivalHere decides on the target whether a machine arrived whose source is lost.
//
//	              shared disks           a disk copied along
//	not all here  not arrived            not arrived
//	all here      arrived                not arrived; arrived if the source was removed
//	resumed       arrived                arrived, whatever happened to it since (Left)
//	ended         arrived                unknown; arrived if the source was removed
//
// With shared disks the machine has ended on a lost source. With a disk of its own
// it is not killed there, and may still run if the source has not given it up: then
// it is the source's, and what arrived here is no newer than what the source has.
func arrivalHere(run runFile, s hypervisor.MigrationStatus, removed bool) arrival {
	alone := run.Volume != "" && !removed
	switch {
	case run.Volume != "" && run.Left:
		return arrived
	case s.State == hypervisor.Missing, s.State == hypervisor.Incoming && (!s.Received || alone):
		return arrivedNot
	case alone:
		return arrivalUnknown
	}
	return arrived
}

// reconcile performs the target's part that the source does not request: it cleans
// up when a migration has ended otherwise, and decides when the source is lost. It
// does not resume the machine: it reports that it has it, and the machine is
// resumed when the instance is assigned to this node. The decision is final: what
// has not arrived is discarded before, and cannot arrive any more.
func (t *migrationTarget) reconcile(ctx context.Context, m api.Migration) (time.Duration, error) {
	id := m.Spec.Instance
	if m.Spec.Offline {
		return t.receiver.reconcile(ctx, m)
	}
	if m.Assignment.Phase.Ended() || m.Status.Phase.Ended() {
		t.trigger(key(api.KindInstance, string(id)))
		return 0, nil
	}
	if again, err := t.noteArrival(ctx, m); again > 0 || err != nil {
		return again, err
	}
	if !t.members.away(m.Assignment.Source) {
		return 10 * time.Second, nil
	}
	n, ok := t.cache.self()
	if !ok || n.Assignment.Epoch > t.epoch.get() || !t.fence.leased() {
		return time.Second, nil
	}
	what, err := t.decideArrival(ctx, m)
	if err != nil {
		return 0, err
	}
	now := t.o.Now().UTC()
	st := m.Status
	switch what {
	case arrived:
		st.Phase, st.LastError, st.EndedAt = api.MigrationSucceeded, "", &now
	case arrivedNot:
		st.Phase, st.LastError, st.EndedAt = api.MigrationFailed, "the source was lost", &now
	case arrivalUnknown:
		st.LastError = "its disk has arrived there, and only node " + t.members.nameOf(m.Assignment.Source) + " knows whether it has let go of the machine: waits for that one"
		return 10 * time.Second, t.migrations.writeStatus(ctx, m, st)
	}
	if err := t.migrations.writeStatus(ctx, m, st); err != nil {
		return 0, err
	}
	t.trigger(key(api.KindMigration, m.Meta.ID))
	return 0, nil
}

// decideArrival decides whether the machine arrived, and discards what has not.
func (t *migrationTarget) decideArrival(ctx context.Context, m api.Migration) (arrival, error) {
	id := m.Spec.Instance
	if t.o.Migrator == nil {
		return arrivedNot, nil
	}
	run, err := t.files.readRun(id)
	if err != nil {
		return arrivalUnknown, err
	}
	if run.Incoming != api.MigrationID(m.Meta.ID) { // nothing was prepared for this migration
		return arrivedNot, nil
	}
	s, err := t.domain.migration(ctx, id)
	if err != nil {
		return arrivalUnknown, err
	}
	what := arrivalHere(run, s, t.members.removed(m.Assignment.Source))
	if what == arrivedNot {
		err = t.domain.discardMigration(ctx, id)
	}
	return what, err
}
