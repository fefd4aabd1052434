package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListMigrations pages through them.
func (h *handlers) ListMigrations(ctx context.Context, r in[api.ListMigrationsParams, none]) (*page[api.Migration], error) {
	p, err := list[api.Migration](ctx, h, api.KindMigration, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateMigration asks for one. Whether it can be done is the planner's to
// say; what can be seen at once is refused at once.
func (h *handlers) CreateMigration(ctx context.Context, r in[api.CreateMigrationParams, api.Migration]) (*api.Migration, error) {
	id := newID(api.KindMigration)
	if r.Body.Meta.Name == "" {
		r.Body.Meta.Name = nameOf(id)
	}
	m, err := h.place(ctx, api.KindMigration, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec := r.Body.Spec
	if err := api.ValidateMigration(spec); err != nil {
		return nil, err
	}
	o, err := h.find(ctx, api.KindInstance, string(spec.Instance), r.Body.Meta.Organization, "")
	if err != nil {
		return nil, at(err, "spec.instance")
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	spec.Instance = api.InstanceID(in.Meta.ID)
	if spec.Target != "" {
		n, err := h.find(ctx, api.KindNode, string(spec.Target), "", "")
		if err != nil {
			return nil, at(err, "spec.target")
		}
		spec.Target = api.NodeID(n.Meta.ID)
	}
	if err := migratable(in, spec); err != nil {
		return nil, err
	}
	mig, err := create[api.Migration](ctx, h, api.KindMigration, id, m, spec, r.Params.IdempotencyKey)
	return &mig, err
}

func migratable(in api.Instance, s api.MigrationSpec) error {
	switch {
	case in.Meta.DeletedAt != nil:
		return api.Errorf(api.CodeState, "instance %s is being deleted", in.Meta.Name).At("spec.instance")
	case in.Spec.Vgpu != nil:
		return api.Errorf(api.CodeState, "instance %s has a virtual GPU: it does not move while it runs", in.Meta.Name).At("spec.instance").
			WithHint("drain its node: it is then started elsewhere")
	case in.Status.Phase != api.InstanceRunning:
		return api.Errorf(api.CodeState, "instance %s is not running", in.Meta.Name).At("spec.instance").WithHint("start it first")
	case s.Target != "" && s.Target == in.Assignment.Node:
		return api.Errorf(api.CodeInvalid, "instance %s is there already", in.Meta.Name).At("spec.target")
	}
	return nil
}

// GetMigration by id or name.
func (h *handlers) GetMigration(ctx context.Context, r in[none, none]) (*api.Migration, error) {
	o, err := get[api.Migration](ctx, h, api.KindMigration, r.ID, "", "")
	return &o, err
}

// UpdateMigration aborts one.
func (h *handlers) UpdateMigration(ctx context.Context, r in[none, api.Migration]) (*api.Migration, error) {
	o, err := update(ctx, h, api.KindMigration, r.ID, r.Body.Meta, func(old api.Migration) (any, error) {
		return r.Body.Spec, api.ChangeMigration(old.Spec, r.Body.Spec)
	})
	return &o, err
}

// DeleteMigration forgets one that has ended.
func (h *handlers) DeleteMigration(ctx context.Context, r in[none, none]) (*api.Migration, error) {
	old, err := get[api.Migration](ctx, h, api.KindMigration, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if !old.Assignment.Phase.Ended() {
		return nil, api.Errorf(api.CodeState, "migration %s goes on", old.Meta.Name).WithHint("abort it first: basalt migration abort %s", old.Meta.Name)
	}
	o, err := remove[api.Migration](ctx, h, api.KindMigration, old.Meta.ID)
	return &o, err
}
