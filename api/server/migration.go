package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// migrationSpec replaces names with IDs and validates; the only change is to abort.
// Whether the instance is stopped is decided here, once. The planner decides whether a
// migration is possible; what it would refuse now is refused here.
func (h *handlers) migrationSpec(ctx context.Context, _ api.Meta, old *api.Migration, s api.MigrationSpec) (api.MigrationSpec, error) {
	if old != nil {
		return s, api.ChangeMigration(old.Spec, s)
	}
	if err := api.ValidateMigration(s); err != nil {
		return s, err
	}
	var bad []error
	if s.Target != "" {
		n, err := h.find(ctx, api.KindNode, string(s.Target), "", "")
		bad = append(bad, at(err, "spec.target"))
		s.Target = api.NodeID(n.Meta.ID)
	}
	if s.Volume != "" {
		return h.volumeMigrationSpec(ctx, s, bad)
	}
	in, err := get[api.Instance](ctx, h, api.KindInstance, string(s.Instance), "", "")
	bad = append(bad, at(err, "spec.instance"))
	s.Instance = api.InstanceID(in.Meta.ID)
	if err := api.Join(bad...); err != nil {
		return s, err
	}
	s.Offline = api.AtRest(in)
	if err := migratable(in, s); err != nil {
		return s, err
	}
	_, _, err = h.migrationTarget(ctx, s)
	return s, err
}

// volumeMigrationSpec is migrationSpec for a volume without an instance.
func (h *handlers) volumeMigrationSpec(ctx context.Context, s api.MigrationSpec, bad []error) (api.MigrationSpec, error) {
	v, err := get[api.Volume](ctx, h, api.KindVolume, string(s.Volume), "", "")
	s.Volume, s.Offline = api.VolumeID(v.Meta.ID), true
	if err := api.Join(append(bad, at(err, "spec.volume"))...); err != nil {
		return s, err
	}
	if s.Target != "" && s.Target == v.Assignment.Node {
		return s, api.Errorf(api.CodeInvalid, "volume %s is already on this node", v.Meta.Name).At("spec.target")
	}
	_, _, err = h.migrationTarget(ctx, s)
	return s, err
}

// migrationTarget returns the node that the instance or volume is on and the one that a
// migration would choose, or an error if it would fail; the latter is empty if this
// server does not know the nodes' room.
func (h *handlers) migrationTarget(ctx context.Context, s api.MigrationSpec) (from, to api.NodeID, err error) {
	if s.Volume != "" {
		v, err := get[api.Volume](ctx, h, api.KindVolume, string(s.Volume), "", "")
		if err != nil || h.opts.Room == nil {
			return v.Assignment.Node, "", err
		}
		to, err = h.opts.Room.VolumeMigrationTarget(ctx, v, s)
		return v.Assignment.Node, to, wrapTarget(err, "volume", v.Meta.Name)
	}
	in, err := get[api.Instance](ctx, h, api.KindInstance, string(s.Instance), "", "")
	if err != nil || h.opts.Room == nil {
		return in.Assignment.Node, "", err
	}
	to, err = h.opts.Room.MigrationTarget(ctx, in, s)
	return in.Assignment.Node, to, wrapTarget(err, "instance", in.Meta.Name)
}

func wrapTarget(err error, what, name string) error {
	if err != nil {
		return fmt.Errorf("find a node for %s %s: %w", what, name, err)
	}
	return nil
}

// wouldMigrate shows in a dry run where the instance or volume would be migrated to. A
// real migration reports that in its assignment, after it was planned.
func (h *handlers) wouldMigrate(ctx context.Context, old, m *api.Migration) (err error) {
	if !dryRun(ctx) || old != nil {
		return nil
	}
	m.Assignment.Source, m.Assignment.Target, err = h.migrationTarget(ctx, m.Spec)
	return err
}

// migrationDeleted refuses to delete a migration that has not ended.
func (h *handlers) migrationDeleted(_ context.Context, m api.Migration) ([]api.Command, error) {
	if !m.Assignment.Phase.Ended() {
		return nil, api.Errorf(api.CodeState, "cannot delete migration %s: it has not ended", m.Meta.Name).WithHint("abort it first: basalt migration abort %s", m.Meta.Name)
	}
	return nil, nil
}

func migratable(in api.Instance, s api.MigrationSpec) error {
	switch {
	case in.Meta.DeletedAt != nil:
		return api.Errorf(api.CodeState, "instance %s is being deleted", in.Meta.Name).At("spec.instance")
	case s.Offline && in.Assignment.Node == "":
		return api.Errorf(api.CodeState, "cannot migrate instance %s: it is not on a node", in.Meta.Name).At("spec.instance").WithHint("it is placed when a node has room for it")
	case !s.Offline && in.Spec.Vgpu != nil:
		return api.Errorf(api.CodeState, "cannot live-migrate instance %s: it has a virtual GPU", in.Meta.Name).At("spec.instance").
			WithHint("stop it first, or drain its node to restart it on another one")
	case !s.Offline && in.Status.Phase != api.InstanceRunning:
		return api.Errorf(api.CodeState, "cannot migrate instance %s: its phase is %s, want Running or Stopped", in.Meta.Name, in.Status.Phase).At("spec.instance").
			WithHint("wait until it is running or stopped")
	case s.Target != "" && s.Target == in.Assignment.Node:
		return api.Errorf(api.CodeInvalid, "instance %s is already on this node", in.Meta.Name).At("spec.target")
	}
	return nil
}
