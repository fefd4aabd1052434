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
func (h *handlers) ListCephClusters(ctx context.Context, r ListCephClustersRequestObject) (ListCephClustersResponseObject, error) {
	p, err := list[api.CephCluster](ctx, h, api.KindCephCluster, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return ListCephClusters200JSONResponse(p), err
}

// CreateCephCluster makes one.
func (h *handlers) CreateCephCluster(ctx context.Context, r CreateCephClusterRequestObject) (CreateCephClusterResponseObject, error) {
	m, err := h.place(ctx, api.KindCephCluster, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := cephClusterSpec(m.Name, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.CephCluster](ctx, h, api.KindCephCluster, newID(api.KindCephCluster), m, spec, r.Params.IdempotencyKey)
	return CreateCephCluster201JSONResponse(o), err
}

// GetCephCluster by id or name.
func (h *handlers) GetCephCluster(ctx context.Context, r GetCephClusterRequestObject) (GetCephClusterResponseObject, error) {
	o, err := get[api.CephCluster](ctx, h, api.KindCephCluster, r.ID, "", "")
	return GetCephCluster200JSONResponse(o), err
}

// UpdateCephCluster changes name, labels and spec.
func (h *handlers) UpdateCephCluster(ctx context.Context, r UpdateCephClusterRequestObject) (UpdateCephClusterResponseObject, error) {
	o, err := update(ctx, h, api.KindCephCluster, r.ID, r.Body.Meta, func(old api.CephCluster) (any, error) {
		return cephClusterSpec(cmp.Or(r.Body.Meta.Name, old.Meta.Name), r.Body.Spec)
	})
	return UpdateCephCluster200JSONResponse(o), err
}

// DeleteCephCluster deletes one that nothing uses.
func (h *handlers) DeleteCephCluster(ctx context.Context, r DeleteCephClusterRequestObject) (DeleteCephClusterResponseObject, error) {
	old, err := get[api.CephCluster](ctx, h, api.KindCephCluster, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	if old.Spec.Enabled {
		return nil, api.Errorf(api.CodeState, "Ceph is switched on").WithHint("basalt ceph disable")
	}
	o, err := remove[api.CephCluster](ctx, h, api.KindCephCluster, old.Meta.ID)
	return DeleteCephCluster200JSONResponse(o), err
}
