package server

import (
	"cmp"
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// cephClusterSpec fills in defaults and validates.
func cephClusterSpec(name string, s api.CephClusterSpec) (api.CephClusterSpec, error) {
	s = api.DefaultCephCluster(s)
	return s, api.ValidateCephCluster(name, s)
}

// ListCephClusters pages through what the caller sees.
func (h *handlers) ListCephClusters(ctx context.Context, r in[api.ListCephClustersParams, none]) (*page[api.CephCluster], error) {
	p, err := list[api.CephCluster](ctx, h, api.KindCephCluster, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateCephCluster makes one.
func (h *handlers) CreateCephCluster(ctx context.Context, r in[api.CreateCephClusterParams, api.CephCluster]) (*api.CephCluster, error) {
	m, err := h.place(ctx, api.KindCephCluster, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := cephClusterSpec(m.Name, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.CephCluster](ctx, h, api.KindCephCluster, newID(api.KindCephCluster), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetCephCluster by id or name.
func (h *handlers) GetCephCluster(ctx context.Context, r in[none, none]) (*api.CephCluster, error) {
	o, err := get[api.CephCluster](ctx, h, api.KindCephCluster, r.ID, "", "")
	return &o, err
}

// UpdateCephCluster changes name, labels and spec.
func (h *handlers) UpdateCephCluster(ctx context.Context, r in[none, api.CephCluster]) (*api.CephCluster, error) {
	o, err := update(ctx, h, api.KindCephCluster, r.ID, r.Body.Meta, func(old api.CephCluster) (any, error) {
		return cephClusterSpec(cmp.Or(r.Body.Meta.Name, old.Meta.Name), r.Body.Spec)
	})
	return &o, err
}

// DeleteCephCluster deletes one that nothing uses.
func (h *handlers) DeleteCephCluster(ctx context.Context, r in[none, none]) (*api.CephCluster, error) {
	old, err := get[api.CephCluster](ctx, h, api.KindCephCluster, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if old.Spec.Enabled {
		return nil, api.Errorf(api.CodeState, "Ceph is switched on").WithHint("basalt ceph disable")
	}
	o, err := remove[api.CephCluster](ctx, h, api.KindCephCluster, old.Meta.ID)
	return &o, err
}
