package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// MigrationTarget returns the node that a migration would choose that is created now, or
// why it would fail: with CodeState if the instance cannot be migrated at all, and with
// CodeNoCapacity if no node, or not the requested one, can take it.
func MigrationTarget(s *State, in api.Instance, spec api.MigrationSpec, now time.Time) (api.NodeID, error) {
	m := api.Migration{Spec: spec}
	if why := cannotMigrate(s, m, in); why != "" {
		return "", api.Errorf(api.CodeState, "cannot migrate instance %s: %s", in.Meta.Name, why).At("spec.instance")
	}
	to := target(s, usage(s), m, in, now)
	if to.Node != "" {
		return to.Node, nil
	}
	field, hint := "spec.instance", "make room on another node, or add one"
	if spec.Target != "" {
		field, hint = "spec.target", "choose another node, or leave it out"
	}
	return "", api.Errorf(api.CodeNoCapacity, "cannot migrate instance %s: %s", in.Meta.Name, to.Reason).At(field).WithHint("%s", hint)
}
