package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// snapshotSpec turns the volume's name into its id and validates.
func (h *handlers) snapshotSpec(ctx context.Context, m api.Meta, s api.SnapshotSpec) (api.SnapshotSpec, error) {
	if err := api.ValidateSnapshot(s); err != nil {
		return s, err
	}
	v, err := h.readyVolume(ctx, m, string(s.Volume))
	s.Volume = api.VolumeID(v.Meta.ID)
	return s, err
}

// readyVolume is a volume of the project that has content.
func (h *handlers) readyVolume(ctx context.Context, m api.Meta, ref string) (api.Volume, error) {
	v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, m, "spec.volume", ref)
	if err == nil && v.Status.Phase != api.VolumeReady {
		err = api.Errorf(api.CodeState, "volume %s is not ready", v.Meta.Name).At("spec.volume").WithHint("wait until it is: basalt volume get %s", v.Meta.Name)
	}
	return v, err
}

// ListSnapshots pages through what the caller sees.
func (h *handlers) ListSnapshots(ctx context.Context, r in[api.ListSnapshotsParams, none]) (*page[api.Snapshot], error) {
	p, err := list[api.Snapshot](ctx, h, api.KindSnapshot, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// CreateSnapshot makes one.
func (h *handlers) CreateSnapshot(ctx context.Context, r in[api.CreateSnapshotParams, api.Snapshot]) (*api.Snapshot, error) {
	m, err := h.place(ctx, api.KindSnapshot, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.snapshotSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Snapshot](ctx, h, api.KindSnapshot, newID(api.KindSnapshot), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetSnapshot by id or name.
func (h *handlers) GetSnapshot(ctx context.Context, r in[api.GetSnapshotParams, none]) (*api.Snapshot, error) {
	o, err := get[api.Snapshot](ctx, h, api.KindSnapshot, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}

// UpdateSnapshot changes name, labels and spec.
func (h *handlers) UpdateSnapshot(ctx context.Context, r in[none, api.Snapshot]) (*api.Snapshot, error) {
	o, err := update(ctx, h, api.KindSnapshot, r.ID, r.Body.Meta, func(old api.Snapshot) (any, error) {
		s := r.Body.Spec
		if v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, old.Meta, "spec.volume", string(s.Volume)); err == nil {
			s.Volume = api.VolumeID(v.Meta.ID)
		}
		return s, api.ChangeSnapshot(old.Spec, s)
	})
	return &o, err
}

// DeleteSnapshot deletes one that nothing uses.
func (h *handlers) DeleteSnapshot(ctx context.Context, r in[none, none]) (*api.Snapshot, error) {
	o, err := remove[api.Snapshot](ctx, h, api.KindSnapshot, r.ID)
	return &o, err
}
