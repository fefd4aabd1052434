package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// VolumeMigrationTarget returns the node that the migration of a volume would choose that
// is created now, or why it would fail, as MigrationTarget does.
func VolumeMigrationTarget(s *State, v api.Volume, spec api.MigrationSpec, now time.Time) (api.NodeID, error) {
	if why := cannotMoveVolume(s, api.Migration{Spec: spec}, v); why != "" {
		return "", api.Errorf(api.CodeState, "cannot migrate volume %s: %s", v.Meta.Name, why).At("spec.volume")
	}
	to, why := volumeTarget(s, usage(s), spec.Target, v, now)
	if lost(s, v.Assignment.Node) {
		why = "node " + nodeName(s, v.Assignment.Node) + " is lost"
	}
	if why != "" {
		return "", noTarget(spec, "volume "+v.Meta.Name, why)
	}
	return to, nil
}

// noTarget returns the error of a migration that no node can take.
func noTarget(spec api.MigrationSpec, what, why string) error {
	field, hint := "spec.target", "choose another node, or leave it out"
	if spec.Target == "" {
		field, hint = "spec.instance", "make room on another node, or add one"
		if spec.Volume != "" {
			field = "spec.volume"
		}
	}
	return api.Errorf(api.CodeNoCapacity, "cannot migrate %s: %s", what, why).At(field).WithHint("%s", hint)
}

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
	return "", noTarget(spec, "instance "+in.Meta.Name, to.Reason)
}
