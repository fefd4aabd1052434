package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// Offers returns the GPU slices that are available now.
type Offers interface {
	// Offers returns one page. The query is valid and has a limit.
	Offers(ctx context.Context, q api.OfferQuery) (api.OfferList, error)
}

// ListOffers pages through what is available, at the prices of the project's
// organization, the named one, or the caller's.
func (h *handlers) ListOffers(ctx context.Context, r in[api.ListOffersParams, none]) (*api.OfferList, error) {
	p := r.Params
	q := api.OfferQuery{Model: p.Model, Pool: p.Pool, Tier: p.Tier, RootBytes: p.RootBytes, VRAMBytes: p.VramBytes, SharePercent: p.SharePercent,
		Limit: cmp.Or(p.Limit, maxLimit), Continue: p.Continue}
	if q.Limit < 1 || q.Limit > maxLimit {
		return nil, api.Errorf(api.CodeInvalid, "the limit is 1 to %d", maxLimit).At("limit")
	}
	err := api.ValidateOfferQuery(q)
	var payerErr, flavorErr error
	q.Organization, payerErr = h.payerOf(ctx, p.Organization, p.Project)
	if p.Flavor != "" {
		var o api.Object
		o, flavorErr = h.find(ctx, api.KindFlavor, string(p.Flavor), "", "")
		q.Flavor, flavorErr = api.FlavorID(o.Meta.ID), at(flavorErr, "flavor")
	}
	switch err := api.Join(payerErr, flavorErr, err); {
	case err != nil:
		return nil, err
	case h.opts.Offers == nil:
		return nil, api.Errorf(api.CodeUnavailable, "this server has no offers")
	}
	l, err := h.opts.Offers.Offers(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("compute the offers for organization %s: %w", q.Organization, err)
	}
	return &l, nil
}

// payerOf returns the organization that pays: that of the project, the named one, or
// the caller's. It is empty if an operator names none.
func (h *handlers) payerOf(ctx context.Context, organization, project string) (api.OrganizationID, error) {
	if project != "" {
		o, err := h.find(ctx, api.KindProject, project, cmp.Or(organization, who(ctx).Org), "")
		return api.OrganizationID(o.Meta.Organization), at(err, "project")
	}
	if organization == "" {
		return api.OrganizationID(who(ctx).Org), nil
	}
	o, err := h.find(ctx, api.KindOrganization, organization, "", "")
	return api.OrganizationID(o.Meta.ID), at(err, "organization")
}
