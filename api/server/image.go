package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// imageSpec validates. An image of the whole cluster is public: nobody else
// could use it. Only operators publish to all tenants.
func (h *handlers) imageSpec(ctx context.Context, m api.Meta, s api.ImageSpec, wasPublic bool) (api.ImageSpec, error) {
	if m.Project == "" {
		s.Public = true
	}
	if s.Public && !wasPublic && who(ctx).role != api.RoleOperator {
		return s, api.Errorf(api.CodeForbidden, "only an operator may publish an image to every project").At("spec.public")
	}
	return s, api.ValidateImage(s)
}

// ListImages pages through what the caller sees.
func (h *handlers) ListImages(ctx context.Context, r in[api.ListImagesParams, none]) (*page[api.Image], error) {
	p, err := list[api.Image](ctx, h, api.KindImage, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort,
		organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// CreateImage makes one.
func (h *handlers) CreateImage(ctx context.Context, r in[api.CreateImageParams, api.Image]) (*api.Image, error) {
	m, err := h.place(ctx, api.KindImage, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.imageSpec(ctx, m, r.Body.Spec, false)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Image](ctx, h, api.KindImage, newID(api.KindImage), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetImage by id or name.
func (h *handlers) GetImage(ctx context.Context, r in[api.GetImageParams, none]) (*api.Image, error) {
	o, err := get[api.Image](ctx, h, api.KindImage, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}

// UpdateImage changes name, labels and spec.
func (h *handlers) UpdateImage(ctx context.Context, r in[none, api.Image]) (*api.Image, error) {
	o, err := update(ctx, h, api.KindImage, r.ID, r.Body.Meta, func(old api.Image) (any, error) {
		s, err := h.imageSpec(ctx, old.Meta, r.Body.Spec, old.Spec.Public)
		if err != nil {
			return nil, err
		}
		return s, api.ChangeImage(old.Spec, s)
	})
	return &o, err
}

// DeleteImage deletes one that nothing uses.
func (h *handlers) DeleteImage(ctx context.Context, r in[none, none]) (*api.Image, error) {
	o, err := remove[api.Image](ctx, h, api.KindImage, r.ID)
	return &o, err
}
