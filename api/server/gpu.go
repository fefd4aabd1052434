package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListGPUs pages through what the caller sees.
func (h *handlers) ListGPUs(ctx context.Context, r in[api.ListGPUsParams, none]) (*page[api.GPU], error) {
	p, err := list[api.GPU](ctx, h, api.KindGPU, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// GetGPU by id or name.
func (h *handlers) GetGPU(ctx context.Context, r in[none, none]) (*api.GPU, error) {
	o, err := get[api.GPU](ctx, h, api.KindGPU, r.ID, "", "")
	return &o, err
}

// UpdateGPU changes name, labels and spec.
func (h *handlers) UpdateGPU(ctx context.Context, r in[none, api.GPU]) (*api.GPU, error) {
	o, err := update(ctx, h, api.KindGPU, r.ID, r.Body.Meta, func(old api.GPU) (any, error) {
		if err := api.ValidateGPU(r.Body.Spec); err != nil {
			return nil, err
		}
		return r.Body.Spec, h.pool(ctx, "spec.pool", r.Body.Spec.Pool)
	})
	return &o, err
}
