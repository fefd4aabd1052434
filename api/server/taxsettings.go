package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// taxSettings defines the tax settings of the operator and of resellers.
func (h *handlers) taxSettings() settings[api.GetTaxSettingsParams, api.StoredTaxSettings, api.TaxSettings] {
	return settings[api.GetTaxSettingsParams, api.StoredTaxSettings, api.TaxSettings]{
		what: "tax settings",
		unset: func(ctx context.Context, _ string, p api.GetTaxSettingsParams) (api.Object, error) {
			seller := cmp.Or(p.Organization, who(ctx).Org)
			if seller != "" {
				var err error
				if seller, err = h.sellingOrganization(ctx, seller); err != nil {
					return api.Object{}, err
				}
			}
			id := api.TaxSettingsID(api.OrganizationID(seller))
			return api.Object{Kind: api.KindTaxSettings, Meta: api.Meta{ID: id, Name: id, Organization: seller}}, nil
		},
		view: func(_ context.Context, t api.StoredTaxSettings) (api.TaxSettings, error) { return t.View(), nil },
		spec: func(_ context.Context, _ api.StoredTaxSettings, s api.TaxSettings) (any, error) {
			return s.Stored(), api.ValidateTaxSettings(s)
		},
	}
}

// ofSeller returns the commands that delete what only a seller has, of an organization that
// is deleted.
func (h *handlers) ofSeller(ctx context.Context, organization string) (cmds []api.Command, err error) {
	gone := func(o api.Object) bool {
		cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: o.Kind, ID: o.Meta.ID, Expect: o.Meta.Revision})
		return true
	}
	for _, x := range []struct {
		kind api.Kind
		id   string
	}{
		{api.KindBranding, api.BrandingIDOf(organization)},
		{api.KindSignUpSettings, api.SignUpSettingsIDOf(organization)},
		{api.KindTaxSettings, api.TaxSettingsID(api.OrganizationID(organization))},
	} {
		o, err := h.opts.Store.Get(ctx, x.kind, x.id)
		switch {
		case err == nil:
			gone(o)
		case api.CodeOf(err) != api.CodeNotFound:
			return nil, fmt.Errorf("read %s of organization %s: %w", x.kind, organization, err)
		}
	}
	err = h.each(ctx, api.ListQuery{Kind: api.KindPortalDomain, Organization: organization}, gone)
	return cmds, err
}
