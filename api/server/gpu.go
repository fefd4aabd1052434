package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ListGPUs pages through what the caller sees.
func (h *handlers) ListGPUs(ctx context.Context, r ListGPUsRequestObject) (ListGPUsResponseObject, error) {
	p, err := list[api.GPU](ctx, h, api.KindGPU, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return ListGPUs200JSONResponse(p), err
}

// GetGPU by id or name.
func (h *handlers) GetGPU(ctx context.Context, r GetGPURequestObject) (GetGPUResponseObject, error) {
	o, err := get[api.GPU](ctx, h, api.KindGPU, r.ID, "", "")
	return GetGPU200JSONResponse(o), err
}

// UpdateGPU changes name, labels and spec.
func (h *handlers) UpdateGPU(ctx context.Context, r UpdateGPURequestObject) (UpdateGPUResponseObject, error) {
	o, err := update(ctx, h, api.KindGPU, r.ID, r.Body.Meta, func(old api.GPU) (any, error) {
		if err := api.ValidateGPU(r.Body.Spec); err != nil {
			return nil, err
		}
		return r.Body.Spec, h.pool(ctx, "spec.pool", r.Body.Spec.Pool)
	})
	return UpdateGPU200JSONResponse(o), err
}
