package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// can gives a node machine types.
func (s *State) can(id string, types ...string) {
	n := s.Nodes[id]
	n.Status.Machines.Types = types
	s.Nodes[id] = n
}

// An instance goes only where QEMU has the machine type that it began with: when it
// moves, and when it is placed anew. A node that does not say is not left out.
func TestAMachineTypeIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name   string
		types  []string // of n3
		reason string   // empty: it goes there
	}{
		{"the same", []string{"pc-q35-10.0", "pc-q35-9.2"}, ""},
		{"none said", nil, ""},
		{"an older QEMU", []string{"pc-q35-9.2"}, "n3: its QEMU has no machine type pc-q35-10.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three().instance("a", "flv-1", 0, 0)
			s.on(t, "n2")
			in := s.Instances["a"]
			in.Status.Machine = api.InstanceMachine{Type: "pc-q35-10.0"}
			s.Instances["a"] = in
			s.can("n3", c.types...)
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
			settle(t, s)
			m := s.Migrations["m"].Assignment
			if c.reason == "" && m.Phase != api.MigrationPreparing || c.reason != "" && (m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, c.reason)) {
				t.Errorf("the migration is %+v, want the reason %q", m, c.reason)
			}
		})
	}
	s := three().instance("a", "flv-1", 0, 0)
	in := s.Instances["a"]
	in.Status.Machine = api.InstanceMachine{Type: "pc-q35-10.0"}
	s.Instances["a"] = in
	s.can("n1", "pc-q35-9.2")
	s.can("n2", "pc-q35-10.0")
	s.can("n3", "pc-q35-9.2")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Errorf("placed anew: %+v, want n2", a)
	}
}
