package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// returnNode is the return of a lost node that has released what is not its own.
func (s *State) returnNode(id string) {
	delete(s.Health, id)
	n := s.Nodes[id]
	n.Status.ObservedEpoch = n.Assignment.Epoch
	s.Nodes[id] = n
}

// remove removes a node permanently, as an operator does.
func (s *State) remove(id string) {
	delete(s.Nodes, id)
	delete(s.Health, id)
}

// movingDisk returns a state in which instance a is being migrated from n2 to n3, with
// its disk.
func movingDisk(t *testing.T, phase api.MigrationPhase) *State {
	s := three().instance("a", "flv-1", 0, 0)
	s.spec("a", func(i *api.InstanceSpec) { i.StoragePool = "local" })
	s.on(t, "n2")
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	s.reportMigration("m", phase)
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.MigrateTo != "n3" {
		t.Fatalf("assignment of a = %+v, want node n2 and migrateTo n3", a)
	}
	return s
}

// If the disk is copied along, the newest copy may be on the source or on the target,
// and only one of them can report which. Until then the migration continues: a target
// that learned of its end would delete its copy.
func TestBothNodesOfDiskMigrationLost(t *testing.T) {
	said := func(phase api.MigrationPhase) func(s *State) { return func(s *State) { s.reportMigration("m", phase) } }
	back := func(id string) func(s *State) { return func(s *State) { s.returnNode(id) } }
	remove := func(id string) func(s *State) { return func(s *State) { s.remove(id) } }
	const goesOn, over = true, false
	type step struct {
		event  func(s *State)
		node   api.NodeID
		moves  bool
		reason string // empty: it does not wait
	}
	both := step{func(s *State) { s.fence("n2"); s.fence("n3") }, "n2", goesOn, "both are lost"}
	for name, steps := range map[string][]step{
		"target first, which has it": {both, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{said(api.MigrationSucceeded), "n3", over, ""}, {back("n2"), "n3", over, ""}},
		"target first, which has it not": {both, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{said(api.MigrationFailed), "n2", over, "waiting for the node to return"}, {back("n2"), "n2", over, ""}},
		"target first, which cannot know": {both, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{func(s *State) {
				m := s.Migrations["m"]
				m.Status.LastError = "only node n2 knows"
				s.Migrations["m"] = m
			}, "n2", goesOn, "only node n2 knows"}, {back("n2"), "n2", goesOn, ""}, {said(api.MigrationFailed), "n2", over, ""}},
		"source first, which has it": {both, {back("n2"), "n2", goesOn, ""}, {said(api.MigrationFailed), "n2", over, ""}, {back("n3"), "n2", over, ""}},
		"source first, which has let go": {both, {back("n2"), "n2", goesOn, ""},
			{said(api.MigrationSucceeded), "n3", over, "waiting for the node to return"}, {back("n3"), "n3", over, ""}},
		"one after the other": {{func(s *State) { s.fence("n2") }, "n2", goesOn, "waiting for node n3 to report"},
			{func(s *State) { s.fence("n3") }, "n2", goesOn, "both are lost"}, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{said(api.MigrationSucceeded), "n3", over, ""}},
		"the target had said so, and is lost": {{func(s *State) { s.reportMigration("m", api.MigrationSucceeded); s.fence("n2"); s.fence("n3") }, "n3", over, "waiting for the node to return"},
			{back("n3"), "n3", over, ""}},
		"target removed, source has it": {both, {remove("n3"), "n2", goesOn, "waiting for node n2"}, {back("n2"), "n2", goesOn, ""},
			{said(api.MigrationFailed), "n2", over, ""}},
		"target removed, source has let go": {both, {remove("n3"), "n2", goesOn, "waiting for node n2"}, {back("n2"), "n2", goesOn, ""},
			{said(api.MigrationSucceeded), "n3", over, "it cannot run any more"}},
		"source removed, target has it": {both, {remove("n2"), "n2", goesOn, "waiting for node n3 to report"}, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{said(api.MigrationSucceeded), "n3", over, ""}},
		"source removed, target has it not": {both, {remove("n2"), "n2", goesOn, "waiting for node n3 to report"}, {back("n3"), "n2", goesOn, "waiting for node n3 to report"},
			{said(api.MigrationFailed), "n2", over, "it cannot run any more"}},
		"both removed": {both, {remove("n2"), "n2", goesOn, "waiting for node n3 to report"}, {remove("n3"), "n2", over, "it cannot run any more"}},
		"deleted meanwhile": {both, {func(s *State) {
			in := s.Instances["a"]
			in.Meta.DeletedAt = &now
			s.Instances["a"] = in
		}, "n2", over, "both are lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := movingDisk(t, api.MigrationCopying)
			for i, x := range steps {
				x.event(s)
				settle(t, s)
				a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment
				if a.Node != x.node || m.Phase.Ended() == x.moves || x.moves && a.MigrateTo != "n3" {
					t.Fatalf("step %d: assignment of a = %+v, of the migration = %+v; want node %s and the migration in progress %t", i, a, m, x.node, x.moves)
				}
				if a.NodeLost != (x.reason != "") || !strings.Contains(a.Reason, x.reason) || x.reason == "" && a.Reason != "" {
					t.Errorf("step %d: lost %t with reason %q, want reason %q", i, a.NodeLost, a.Reason, x.reason)
				}
			}
		})
	}
}

// A migration that has not begun to copy ends when either node is lost: the disk is on
// the source.
func TestLostNodeBeforeMigration(t *testing.T) {
	for _, phase := range []api.MigrationPhase{"", api.MigrationPending, api.MigrationPreparing} {
		for _, lost := range [][]string{{"n2"}, {"n3"}, {"n2", "n3"}} {
			s := movingDisk(t, phase)
			for _, id := range lost {
				s.fence(id)
			}
			settle(t, s)
			a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment
			if a.Node != "n2" || a.MigrateTo != "" || a.NodeLost != (lost[0] == "n2") || m.Phase != api.MigrationFailed || m.Reason == "" {
				t.Errorf("phase %q, lost %v: assignment of a = %+v, of the migration = %+v; want node n2, no migrateTo, and phase Failed", phase, lost, a, m)
			}
		}
	}
}

// If the source reports that it copies at the moment when the planner ends the
// migration, only one of the two takes effect: the planner ends it only with a command
// on the revision that it has seen.
func TestMigrationEndsOnObservedState(t *testing.T) {
	for _, lost := range []string{"n2", "n3"} {
		s := movingDisk(t, api.MigrationPreparing)
		m := s.Migrations["m"]
		m.Meta.Revision = 7
		s.Migrations["m"] = m
		s.fence(lost)
		var planned []api.Command
		for range 3 { // the node is lost, then its instances are planned
			planned = Next(s, now)
			ended := false
			for _, c := range planned {
				ended = ended || c.Kind == api.KindMigration
				if c.Kind == api.KindMigration && c.Expect != 7 {
					t.Errorf("%s: command that ends the migration = %+v, want it to expect revision 7", lost, c)
				}
				if c.Kind == api.KindInstance && !strings.Contains(string(c.Data), `"migrateTo":"n3"`) {
					t.Errorf("%s: assignment of the instance = %s, want migrateTo kept until the migration has ended", lost, c.Data)
				}
			}
			if ended {
				break
			}
			for _, c := range planned {
				commit(t, s, c)
			}
		}
		// The source was first: only the commands of the plan that do not change the
		// migration are applied.
		m.Status.Phase, m.Meta.Revision = api.MigrationCopying, 8
		s.Migrations["m"] = m
		refused := 0
		for _, c := range planned {
			if c.Kind == api.KindMigration {
				refused++
				continue
			}
			commit(t, s, c)
		}
		if refused != 1 {
			t.Fatalf("%s: %d commands for the migration in %v, want 1", lost, refused, planned)
		}
		settle(t, s)
		if a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment; m.Phase.Ended() || a.MigrateTo != "n3" {
			t.Errorf("%s: assignment of a = %+v, of the migration = %+v; want it in progress to n3", lost, a, m)
		}
	}
}
