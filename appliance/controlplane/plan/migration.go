package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// planMigration takes one step of a migration. The assignments of the instance and of
// the migration are written one after the other, each from the state of the other, so
// that a leader that fails between them leaves no inconsistent state.
//
//	Pending ─target chosen, instance.migrateTo set─► Preparing ─(the source works)─┬─► instance given to the target ─► Succeeded
//	                                                                               └─► Failed, Aborted ─► instance.migrateTo cleared (clearMigrateTo)
//
// Once the source reports that it copies, the machine may have left it, and if the disk
// is copied along, what was written since then is stored on the target alone. Such a
// migration ends only with a report of one of the two: of the source, which knows
// whether the machine has left it, or, while that is lost, of the target, which knows
// whether it has arrived. Both reports are final. The planner ends other migrations
// itself, on the revision that it has seen: if the source reports at that moment that
// it copies, either the source's report or the planner's command is refused.
func planMigration(s *State, u *used, m api.Migration, now time.Time) []api.Command {
	a := m.Assignment
	if a.Phase.Ended() {
		return nil
	}
	in, ok := s.Instances[string(m.Spec.Instance)]
	if !ok || in.Meta.DeletedAt != nil {
		return endMigration(m, api.MigrationFailed, "the instance does not exist any more")
	}
	if a.Phase == "" || a.Phase == api.MigrationPending {
		return beginMigration(s, u, m, in, now)
	}
	return followMigration(s, u, m, in)
}

func beginMigration(s *State, u *used, m api.Migration, in api.Instance, now time.Time) []api.Command {
	a := in.Assignment
	switch {
	case a.MigrateTo != "" && chosen(m, a):
		// It has begun: whatever has happened since then, the source ends it, and
		// migrateTo is cleared.
		ma := m.Assignment
		ma.Phase = api.MigrationPreparing
		return assign(api.KindMigration, m.Meta, ma)
	case m.Spec.Abort:
		return endMigration(m, api.MigrationAborted, "aborted before it started")
	case cannotMigrate(s, m, in) != "":
		return endMigration(m, api.MigrationFailed, cannotMigrate(s, m, in))
	}
	to := target(s, u, m, in, now)
	if to.Node == "" {
		return endMigration(m, api.MigrationFailed, to.Reason)
	}
	u.AddAt(to.Node, a, to)
	ma := api.MigrationAssignment{Source: a.Node, Target: to.Node, Phase: api.MigrationPending}
	if m.Spec.Offline {
		ma.Volumes = u.copied(s, in)
		u.addCopies(s, ma)
	} else {
		u.addDisk(s, withoutNode(in), to.Node)
	}
	// Two steps in two rounds: the migration names its target first, so that the
	// instance's migrateTo belongs to this migration.
	if m.Assignment.Target != to.Node {
		return assign(api.KindMigration, m.Meta, ma)
	}
	a.MigrateTo, a.MigrateCells, a.MigrateGpu = to.Node, to.Cells, to.Gpu
	return assign(api.KindInstance, in.Meta, a)
}

// cannotMigrate returns why a migration cannot begin, or nothing.
func cannotMigrate(s *State, m api.Migration, in api.Instance) string {
	a := in.Assignment
	switch {
	case recreated(s, in):
		return "an instance with an ephemeral disk cannot be migrated: stop it and drain its node instead"
	case a.Node == "" || lost(s, a.Node):
		return "the instance is not running"
	case a.MigrateTo != "", precededBy(s, m):
		return "the instance is already being migrated"
	case m.Spec.Offline && (!api.AtRest(in) || in.Status.Epoch != a.Epoch || a.Release):
		return "the instance is not stopped"
	case m.Spec.Offline:
		return ""
	case in.Spec.Vgpu != nil:
		return "an instance with a virtual GPU cannot be live-migrated"
	case in.Status.Phase != api.InstanceRunning:
		return "the instance is not running"
	}
	return ""
}

// precededBy reports whether another migration of the instance has chosen its target before
// this one.
func precededBy(s *State, m api.Migration) bool {
	for _, o := range s.Migrations {
		if o.Spec.Instance == m.Spec.Instance && o.Meta.ID != m.Meta.ID && !o.Assignment.Phase.Ended() && o.Assignment.Target != "" &&
			(m.Assignment.Target == "" || o.Meta.ID < m.Meta.ID) {
			return true
		}
	}
	return false
}

// chosen reports whether an instance's migrateTo was set by this migration.
func chosen(m api.Migration, a api.InstanceAssignment) bool {
	return m.Assignment.Target == a.MigrateTo && m.Assignment.Source == a.Node
}

// target returns the assignment that the instance would get: on the requested node, the
// one chosen before, or the best.
func target(s *State, u *used, m api.Migration, in api.Instance, now time.Time) api.InstanceAssignment {
	alone := withoutNode(in)
	to := m.Spec.Target
	if to == "" {
		to = m.Assignment.Target
	}
	if to != "" && lost(s, to) {
		return api.InstanceAssignment{Reason: "node " + nodeName(s, to) + " is lost"}
	}
	// It is migrated with its current resources: a changed spec takes effect when it is
	// stopped.
	runs := placement.Request{VCPUs: in.Assignment.Vcpus, Memory: in.Assignment.MemoryBytes, HugePages: in.Assignment.HugePages,
		Dedicated: in.Assignment.Dedicated(), Cells: in.Assignment.Cells, CPU: &in.Status.Machine.CPU}
	if m.Spec.Offline {
		runs = offlineRequest(s, in)
		u.takes = u.copied(s, in)
		defer func() { u.takes = nil }()
	}
	return placeOn(s, u, alone, runs, now, func(n api.Node) bool {
		id := api.NodeID(n.Meta.ID)
		return id != in.Assignment.Node && (to == "" || id == to)
	})
}

func followMigration(s *State, u *used, m api.Migration, in api.Instance) []api.Command {
	a, ma := in.Assignment, m.Assignment
	switch {
	case a.Node == ma.Target && a.MigrateTo == "":
		return endMigration(m, api.MigrationSucceeded, "")
	case a.Node != ma.Source: // its node was lost meanwhile
		return endMigration(m, api.MigrationFailed, "node "+nodeName(s, ma.Source)+" was lost")
	case m.Status.Phase == api.MigrationSucceeded && m.Spec.Offline:
		return u.handOver(s, m, in)
	case m.Status.Phase == api.MigrationSucceeded:
		a.Cells, a.MigrateCells = a.CellsOn(ma.Target), nil
		a.Node, a.MigrateTo, a.Epoch, a.NodeLost, a.Reason, a.Cause = ma.Target, "", a.Epoch+1, false, "", api.Cause{}
		return assign(api.KindInstance, in.Meta, a)
	case m.Status.Phase.Ended():
		return endMigration(m, m.Status.Phase, m.Status.LastError)
	case copying(m) && (known(s, ma.Source) || known(s, ma.Target)):
		return nil
	case lost(s, ma.Target):
		return endMigration(m, api.MigrationFailed, "node "+nodeName(s, ma.Target)+" was lost")
	case lost(s, ma.Source):
		return endMigration(m, api.MigrationFailed, "node "+nodeName(s, ma.Source)+" was lost")
	}
	return nil
}

// clearMigrateTo clears the migrateTo of a migration that has ended.
func clearMigrateTo(s *State, in api.Instance) []api.Command {
	for _, m := range s.Migrations {
		if string(m.Spec.Instance) == in.Meta.ID && !m.Assignment.Phase.Ended() && chosen(m, in.Assignment) {
			return nil
		}
	}
	a := in.Assignment
	a.MigrateTo, a.MigrateCells, a.MigrateGpu = "", nil, ""
	return assign(api.KindInstance, in.Meta, a)
}

// copying reports whether the machine may have left its source: only the source knows,
// or if that is lost, the target. A stopped one stays until the source has reported
// that all of it was copied.
func copying(m api.Migration) bool {
	return !m.Spec.Offline && m.Assignment.Phase == api.MigrationPreparing && m.Status.Phase == api.MigrationCopying
}

// leaving returns the migration because of which the instance may already be on another
// node than its own.
func leaving(s *State, in api.Instance) (api.Migration, bool) {
	for _, m := range objects.Sorted(s.Migrations) {
		arrived := m.Assignment.Phase == api.MigrationPreparing && m.Status.Phase == api.MigrationSucceeded
		if string(m.Spec.Instance) == in.Meta.ID && m.Assignment.Source == in.Assignment.Node && (copying(m) || arrived) {
			return m, true
		}
	}
	return api.Migration{}, false
}

func endMigration(m api.Migration, phase api.MigrationPhase, reason string) []api.Command {
	a := m.Assignment
	a.Phase, a.Reason = phase, reason
	return assign(api.KindMigration, m.Meta, a)
}
