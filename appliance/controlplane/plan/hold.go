package plan

import (
	"cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// hold returns why an instance must not run although its owner wants it to: its
// organization, or a seller above it, is suspended. It is empty if nothing holds the
// instance. Why a seller is suspended is not for its customers.
func hold(s *State, in api.Instance) string {
	for id := in.Meta.Organization; id != ""; {
		o, ok := s.Organizations[id]
		if !ok {
			return ""
		}
		switch {
		case o.Spec.Suspended != nil && id != in.Meta.Organization:
			return "the seller of its organization is suspended"
		case o.Spec.Suspended != nil:
			return "organization " + o.Meta.Name + " is suspended: " + cmp.Or(o.Spec.Suspended.Reason, "no reason was given")
		}
		id = o.Meta.Organization
	}
	return ""
}

// planHolds holds the instances of suspended organizations, and releases those that are
// held no longer. An instance for which commands are planned waits for the next round,
// one that is migrated for the end of its migration.
func planHolds(s *State, planned []api.Command) (cmds []api.Command) {
	busy := map[string]bool{}
	for _, c := range planned {
		busy[c.ID] = true
	}
	for _, in := range objects.Sorted(s.Instances) {
		a := in.Assignment
		a.Hold = hold(s, in)
		if a.Hold == in.Assignment.Hold || a.Node == "" || a.MigrateTo != "" || busy[in.Meta.ID] || in.Meta.DeletedAt != nil {
			continue
		}
		cmds = append(cmds, assign(api.KindInstance, in.Meta, a)...)
	}
	return cmds
}
