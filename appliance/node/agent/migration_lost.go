package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// surely is how long a machine that comes must be seen to run until it is
// believed: a libvirtd that starts anew takes one that still waits for its
// memory for running, until it has looked closer.
const surely = 2 * time.Second

// noteArrival notes that a machine that came here was let run. Its source does
// that, and only when it has let go.
func (a *Agent) noteArrival(ctx context.Context, m api.Migration) (again time.Duration, err error) {
	id := m.Spec.Instance
	run, err := a.files.readRun(id)
	if err != nil || run.Left || run.Incoming != api.MigrationID(m.Meta.ID) {
		return 0, err
	}
	s, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return 0, err
	}
	now := a.o.Now()
	a.mu.Lock()
	first, seen := a.arrived[string(id)]
	switch runs := s.State == hypervisor.Running || s.State == hypervisor.Paused; {
	case !runs:
		delete(a.arrived, string(id))
	case !seen:
		a.arrived[string(id)] = now
	}
	a.mu.Unlock()
	switch {
	case s.State != hypervisor.Running && s.State != hypervisor.Paused:
		return 0, nil
	case !seen || now.Sub(first) < surely:
		return surely / 2, nil
	}
	run.Left = true
	return 0, a.files.writeRun(id, run)
}

// arrivalHere is what a target knows of a machine whose source is lost.
//
//	              shared disks           a disk copied along
//	not all here  not arrived            not arrived
//	all here      arrived                not arrived; arrived if the source was removed
//	let run       arrived                arrived, whatever has become of it since (Left)
//	ended         arrived                not known, arrived if the source was removed
//
// With shared disks a lost source is one on which the machine has ended. With a
// disk of its own it is left alone, and may run on there when it has not let go:
// then it is the source's, and what came here is no newer than what it has.
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

// reconcileIncoming is the target's part when nobody asks it: to clear up when
// a migration has ended otherwise, and to decide when the source is lost. It
// does not let the machine run: it says that it has it, and runs it when the
// instance is given to this node. What it says is the last word: what has not
// arrived is thrown away before, and cannot arrive any more.
func (a *Agent) reconcileIncoming(ctx context.Context, m api.Migration) (time.Duration, error) {
	id := m.Spec.Instance
	if m.Assignment.Phase.Ended() || m.Status.Phase.Ended() {
		a.kick(key(api.KindInstance, string(id)))
		return 0, nil
	}
	if again, err := a.noteArrival(ctx, m); again > 0 || err != nil {
		return again, err
	}
	if !a.members.away(m.Assignment.Source) {
		return 10 * time.Second, nil
	}
	n, ok := a.cache.self()
	if !ok || n.Assignment.Epoch > a.epoch.get() || !a.fence.leased() {
		return time.Second, nil
	}
	what, err := a.decideArrival(ctx, m)
	if err != nil {
		return 0, err
	}
	now := a.o.Now().UTC()
	st := m.Status
	switch what {
	case arrived:
		st.Phase, st.LastError, st.EndedAt = api.MigrationSucceeded, "", &now
	case arrivedNot:
		st.Phase, st.LastError, st.EndedAt = api.MigrationFailed, "the source was lost", &now
	case arrivalUnknown:
		st.LastError = "its disk has arrived there, and only node " + a.members.nameOf(m.Assignment.Source) + " knows whether it has let go of the machine: waits for that one"
		return 10 * time.Second, a.sayMove(ctx, m, st)
	}
	if err := a.sayMove(ctx, m, st); err != nil {
		return 0, err
	}
	a.kick(key(api.KindMigration, m.Meta.ID))
	return 0, nil
}

// decideArrival, and throw away what has not arrived.
func (a *Agent) decideArrival(ctx context.Context, m api.Migration) (arrival, error) {
	id := m.Spec.Instance
	if a.o.Migrator == nil {
		return arrivedNot, nil
	}
	run, err := a.files.readRun(id)
	if err != nil {
		return arrivalUnknown, err
	}
	if run.Incoming != api.MigrationID(m.Meta.ID) { // nothing was made ready for this one
		return arrivedNot, nil
	}
	s, err := a.o.Migrator.MigrationStatus(ctx, id)
	if err != nil {
		return arrivalUnknown, err
	}
	what := arrivalHere(run, s, a.members.removed(m.Assignment.Source))
	if what == arrivedNot {
		err = a.o.Migrator.DiscardMigration(ctx, id)
	}
	return what, err
}
