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
	in, err := get[api.Instance](ctx, h, api.KindInstance, string(s.Instance), "", "")
	bad := []error{at(err, "spec.instance")}
	s.Instance = api.InstanceID(in.Meta.ID)
	if s.Target != "" {
		n, err := h.find(ctx, api.KindNode, string(s.Target), "", "")
		bad = append(bad, at(err, "spec.target"))
		s.Target = api.NodeID(n.Meta.ID)
	}
	if err := api.Join(bad...); err != nil {
		return s, err
	}
	s.Offline = api.AtRest(in)
	if err := migratable(in, s); err != nil {
		return s, err
	}
	_, err = h.migrationTarget(ctx, in, s)
	return s, err
}

// migrationTarget returns the node that a migration would choose, or an error if it would
// fail; empty if this server does not know the nodes' room.
func (h *handlers) migrationTarget(ctx context.Context, in api.Instance, s api.MigrationSpec) (api.NodeID, error) {
	if h.opts.Room == nil {
		return "", nil
	}
	to, err := h.opts.Room.MigrationTarget(ctx, in, s)
	if err != nil {
		return "", fmt.Errorf("find a node for instance %s: %w", in.Meta.Name, err)
	}
	return to, nil
}

// wouldMigrate shows in a dry run where the instance would be migrated to. A real
// migration reports that in its assignment, after it was planned.
func (h *handlers) wouldMigrate(ctx context.Context, old, m *api.Migration) error {
	if !dryRun(ctx) || old != nil {
		return nil
	}
	in, err := get[api.Instance](ctx, h, api.KindInstance, string(m.Spec.Instance), "", "")
	if err != nil {
		return err
	}
	to, err := h.migrationTarget(ctx, in, m.Spec)
	m.Assignment.Source, m.Assignment.Target = in.Assignment.Node, to
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
