package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// pool checks that a GPU pool that a spec names exists. The default one always
// does, as an object or not.
func (h *handlers) pool(ctx context.Context, field, name string) error {
	if name == "" || name == api.DefaultPool {
		return nil
	}
	found := false
	err := h.each(ctx, api.ListQuery{Kind: api.KindGPUPool, Name: name}, func(api.Object) bool {
		found = true
		return false
	})
	if err == nil && !found {
		err = api.Errorf(api.CodeInvalid, "GPUPool %s does not exist", name).At(field).WithHint("basalt gpu-pool list")
	}
	return err
}

func poolSpec(s api.GPUPoolSpec) (api.GPUPoolSpec, error) {
	s = api.DefaultGPUPool(s)
	return s, api.ValidateGPUPool(s)
}

// ListGPUPools pages through what the caller sees.
func (h *handlers) ListGPUPools(ctx context.Context, r in[api.ListGPUPoolsParams, none]) (*page[api.GPUPool], error) {
	p, err := list[api.GPUPool](ctx, h, api.KindGPUPool, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateGPUPool makes one.
func (h *handlers) CreateGPUPool(ctx context.Context, r in[api.CreateGPUPoolParams, api.GPUPool]) (*api.GPUPool, error) {
	m, err := h.place(ctx, api.KindGPUPool, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := poolSpec(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.GPUPool](ctx, h, api.KindGPUPool, newID(api.KindGPUPool), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetGPUPool by id or name.
func (h *handlers) GetGPUPool(ctx context.Context, r in[none, none]) (*api.GPUPool, error) {
	o, err := get[api.GPUPool](ctx, h, api.KindGPUPool, r.ID, "", "")
	return &o, err
}

// UpdateGPUPool changes name, labels and spec.
func (h *handlers) UpdateGPUPool(ctx context.Context, r in[none, api.GPUPool]) (*api.GPUPool, error) {
	o, err := update(ctx, h, api.KindGPUPool, r.ID, r.Body.Meta, func(old api.GPUPool) (any, error) {
		if r.Body.Meta.Name != "" && r.Body.Meta.Name != old.Meta.Name {
			return nil, api.Errorf(api.CodeInvalid, "a pool keeps its name: GPUs and instances refer to it").At("meta.name")
		}
		return poolSpec(r.Body.Spec)
	})
	return &o, err
}

// DeleteGPUPool deletes one that nothing uses.
func (h *handlers) DeleteGPUPool(ctx context.Context, r in[none, none]) (*api.GPUPool, error) {
	o, err := remove[api.GPUPool](ctx, h, api.KindGPUPool, r.ID)
	return &o, err
}
