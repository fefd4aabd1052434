package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// flavor that a spec refers to, by id or name.
func (h *handlers) flavor(ctx context.Context, ref string) (api.Flavor, error) {
	f, err := get[api.Flavor](ctx, h, api.KindFlavor, ref, "", "")
	return f, at(err, "spec.flavor")
}

// ListFlavors pages through what the caller sees.
func (h *handlers) ListFlavors(ctx context.Context, r in[api.ListFlavorsParams, none]) (*page[api.Flavor], error) {
	p, err := list[api.Flavor](ctx, h, api.KindFlavor, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateFlavor makes one.
func (h *handlers) CreateFlavor(ctx context.Context, r in[api.CreateFlavorParams, api.Flavor]) (*api.Flavor, error) {
	m, err := h.place(ctx, api.KindFlavor, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := r.Body.Spec, api.ValidateFlavor(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Flavor](ctx, h, api.KindFlavor, newID(api.KindFlavor), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetFlavor by id or name.
func (h *handlers) GetFlavor(ctx context.Context, r in[none, none]) (*api.Flavor, error) {
	o, err := get[api.Flavor](ctx, h, api.KindFlavor, r.ID, "", "")
	return &o, err
}

// UpdateFlavor changes name, labels and spec.
func (h *handlers) UpdateFlavor(ctx context.Context, r in[none, api.Flavor]) (*api.Flavor, error) {
	o, err := update(ctx, h, api.KindFlavor, r.ID, r.Body.Meta, func(old api.Flavor) (any, error) {
		return r.Body.Spec, api.ValidateFlavor(r.Body.Spec)
	})
	return &o, err
}

// DeleteFlavor deletes one that nothing uses.
func (h *handlers) DeleteFlavor(ctx context.Context, r in[none, none]) (*api.Flavor, error) {
	o, err := remove[api.Flavor](ctx, h, api.KindFlavor, r.ID)
	return &o, err
}
