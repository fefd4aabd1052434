package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// organizationSpec turns the price book's name into its id and validates.
func (h *handlers) organizationSpec(ctx context.Context, s api.OrganizationSpec) (api.OrganizationSpec, error) {
	if s.PriceBook != "" {
		o, err := h.find(ctx, api.KindPriceBook, string(s.PriceBook), "", "")
		if err != nil {
			return s, at(err, "spec.priceBook")
		}
		s.PriceBook = api.PriceBookID(o.Meta.ID)
	}
	return s, api.ValidateOrganization(s)
}

// ListOrganizations pages through what the caller sees.
func (h *handlers) ListOrganizations(ctx context.Context, r ListOrganizationsRequestObject) (ListOrganizationsResponseObject, error) {
	p, err := list[api.Organization](ctx, h, api.KindOrganization, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name})
	return ListOrganizations200JSONResponse(p), err
}

// CreateOrganization makes one.
func (h *handlers) CreateOrganization(ctx context.Context, r CreateOrganizationRequestObject) (CreateOrganizationResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	m, err := h.place(ctx, api.KindOrganization, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.organizationSpec(ctx, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Organization](ctx, h, api.KindOrganization, newID(api.KindOrganization), m, spec, r.Params.IdempotencyKey)
	return CreateOrganization201JSONResponse(o), err
}

// GetOrganization by id or name.
func (h *handlers) GetOrganization(ctx context.Context, r GetOrganizationRequestObject) (GetOrganizationResponseObject, error) {
	o, err := get[api.Organization](ctx, h, api.KindOrganization, r.ID, "", "")
	return GetOrganization200JSONResponse(o), err
}

// UpdateOrganization changes name, labels and spec.
func (h *handlers) UpdateOrganization(ctx context.Context, r UpdateOrganizationRequestObject) (UpdateOrganizationResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	o, err := update(ctx, h, api.KindOrganization, r.ID, r.Body.Meta, func(old api.Organization) (any, error) {
		return h.organizationSpec(ctx, r.Body.Spec)
	})
	return UpdateOrganization200JSONResponse(o), err
}

// DeleteOrganization deletes one that nothing uses.
func (h *handlers) DeleteOrganization(ctx context.Context, r DeleteOrganizationRequestObject) (DeleteOrganizationResponseObject, error) {
	o, err := remove[api.Organization](ctx, h, api.KindOrganization, r.ID)
	return DeleteOrganization200JSONResponse(o), err
}
