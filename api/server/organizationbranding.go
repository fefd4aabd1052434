package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// brandedOrganization returns the ID of an organization whose branding the caller may
// change: the caller's own, or one below it. It must be able to have customers.
func (h *handlers) brandedOrganization(ctx context.Context, ref string) (string, error) {
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return "", err
	case !who(ctx).Reaches(o.Meta.ID, ""):
		return "", notFound(api.KindOrganization, ref)
	}
	return o.Meta.ID, h.maySell(ctx, o.Meta.ID)
}

// organizationBranding returns an organization's own branding, with the organization's ID.
func (h *handlers) organizationBranding(ctx context.Context, ref string) (string, api.StoredBranding, error) {
	id, err := h.brandedOrganization(ctx, ref)
	if err != nil {
		return "", api.StoredBranding{}, err
	}
	b, err := h.branding(ctx, api.BrandingIDOf(id))
	return id, b, err
}

// GetOrganizationBranding returns the branding that a reseller has set.
func (h *handlers) GetOrganizationBranding(ctx context.Context, r in[none, none]) (*api.Branding, error) {
	_, b, err := h.organizationBranding(ctx, r.ID)
	shown := b.View()
	return &shown, err
}

// UpdateOrganizationBranding replaces a reseller's branding except the logo.
func (h *handlers) UpdateOrganizationBranding(ctx context.Context, r in[none, api.Branding]) (*api.Branding, error) {
	id, old, err := h.organizationBranding(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateOrganizationBranding(*r.Body); err != nil {
		return nil, err
	}
	b, err := h.rebrand(ctx, id, r.Body.Revision, r.Body.Spec(old.Spec.Logo))
	return &b, err
}

// GetOrganizationLogo returns the logo that a reseller has set.
func (h *handlers) GetOrganizationLogo(ctx context.Context, r in[none, none]) (*logo, error) {
	_, b, err := h.organizationBranding(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return logoOf(b)
}

// PutOrganizationLogo replaces a reseller's logo.
func (h *handlers) PutOrganizationLogo(ctx context.Context, r in[none, stream]) (*api.Branding, error) {
	return h.newOrganizationLogo(ctx, r.ID, func() ([]byte, error) { return readLogo(r.Body) })
}

// DeleteOrganizationLogo removes a reseller's logo.
func (h *handlers) DeleteOrganizationLogo(ctx context.Context, r in[none, none]) (*api.Branding, error) {
	return h.newOrganizationLogo(ctx, r.ID, func() ([]byte, error) { return nil, nil })
}

// newOrganizationLogo replaces a logo; read is called once the caller may do that.
func (h *handlers) newOrganizationLogo(ctx context.Context, ref string, read func() ([]byte, error)) (*api.Branding, error) {
	id, old, err := h.organizationBranding(ctx, ref)
	if err != nil {
		return nil, err
	}
	if old.Spec.Logo, err = read(); err != nil {
		return nil, err
	}
	b, err := h.rebrand(ctx, id, old.Meta.Revision, old.Spec)
	return &b, err
}

// unbranded returns the commands that delete the branding and the host names of an
// organization that is deleted.
func (h *handlers) unbranded(ctx context.Context, organization string) ([]api.Command, error) {
	var cmds []api.Command
	gone := func(o api.Object) {
		cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision})
	}
	if o, err := h.opts.Store.Get(ctx, api.KindBranding, api.BrandingIDOf(organization)); err == nil {
		gone(o)
	} else if api.CodeOf(err) != api.CodeNotFound {
		return nil, err
	}
	err := h.each(ctx, api.ListQuery{Kind: api.KindPortalDomain, Organization: organization}, func(o api.Object) bool {
		gone(o)
		return true
	})
	return cmds, err
}
