package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// topUp returns the stored settings of an organization; revision 0 means that they were
// never changed.
func (h *handlers) topUp(ctx context.Context, org api.OrganizationID) (api.StoredTopUp, error) {
	o, err := h.opts.Store.Get(ctx, api.KindTopUp, api.TopUpID(org))
	if err != nil && api.CodeOf(err) == api.CodeNotFound {
		return api.StoredTopUp{Kind: api.KindTopUp, Meta: api.Meta{Organization: string(org)}}, nil
	}
	if err != nil {
		return api.StoredTopUp{}, err
	}
	return api.Decode[api.StoredTopUp](o)
}

// GetTopUp returns the automatic top-up of an organization.
func (h *handlers) GetTopUp(ctx context.Context, r in[api.GetTopUpParams, none]) (*api.TopUp, error) {
	now := h.opts.Now()
	org, err := h.payer(ctx, r.Params.Organization, now, now.Add(1))
	if err != nil {
		return nil, err
	}
	t, err := h.topUp(ctx, org)
	if err != nil {
		return nil, err
	}
	return h.topUpView(ctx, t)
}

// topUpView returns the settings in the form of the API, with the organization's
// currency if none was saved.
func (h *handlers) topUpView(ctx context.Context, t api.StoredTopUp) (*api.TopUp, error) {
	shown := t.View()
	if shown.Currency == "" {
		var err error
		if shown.Currency, err = h.opts.Billing.Currency(ctx, shown.Organization); err != nil {
			return nil, err
		}
	}
	return &shown, nil
}

// UpdateTopUp replaces the settings, and forgets the failures of earlier charges.
func (h *handlers) UpdateTopUp(ctx context.Context, r in[api.UpdateTopUpParams, api.TopUp]) (*api.TopUp, error) {
	now := h.opts.Now()
	id, err := h.payer(ctx, r.Params.Organization, now, now.Add(1))
	if err != nil {
		return nil, err
	}
	org, err := get[api.Organization](ctx, h, api.KindOrganization, string(id), "", "")
	if err != nil {
		return nil, err
	}
	spec := r.Body.Spec()
	if spec.Currency, err = h.opts.Billing.Currency(ctx, id); err != nil {
		return nil, err
	}
	limits, err := h.topUpLimits(ctx, org, spec)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateTopUp(spec, limits); err != nil {
		return nil, err
	}
	was, err := h.topUp(ctx, id)
	if err != nil {
		return nil, err
	}
	if was.Meta.Revision != r.Body.Revision { // otherwise a status of another revision would be written
		return nil, api.Errorf(api.CodeConflict, "top-up: the revision is %d, got %d", was.Meta.Revision, r.Body.Revision).At("revision").WithHint("GET it again")
	}
	stored := api.TopUpID(id)
	if _, err = h.putSettings(ctx, "top-up",
		api.Command{Op: api.OpPutSpec, Kind: api.KindTopUp, ID: stored, Expect: r.Body.Revision, Name: stored, Organization: string(id), Data: api.Encode(spec)},
		api.Command{Op: api.OpReport, Kind: api.KindTopUp, ID: stored, Expect: api.AnyRevision, Data: api.Encode(was.Status.Saved())}); err != nil {
		return nil, err
	}
	t, err := h.topUp(ctx, id)
	if err != nil {
		return nil, err
	}
	return h.topUpView(ctx, t)
}

// topUpLimits returns the limits of one charge, or why a top-up cannot be enabled.
func (h *handlers) topUpLimits(ctx context.Context, org api.Organization, s api.TopUpSpec) (api.CardPayments, error) {
	if !s.Enabled {
		return api.CardPayments{}, nil
	}
	limits, err := h.cards(ctx, org)
	switch {
	case err != nil:
		return api.CardPayments{}, err
	case org.Spec.Parent != "":
		return api.CardPayments{}, api.Errorf(api.CodeState, "organization %s pays its reseller", org.Meta.Name).WithHint("ask your reseller how to pay")
	case limits == nil:
		return api.CardPayments{}, api.Errorf(api.CodeState, "online payments are disabled").WithHint("ask your administrator")
	case org.Spec.Billing == nil || org.Spec.Billing.Mode != api.BillingPrepaid:
		return api.CardPayments{}, api.Errorf(api.CodeState, "organization %s does not pay in advance", org.Meta.Name).WithHint("only what is paid in advance can be topped up")
	}
	if s.Card != "" {
		_, err := h.chargedCard(ctx, org, s.Card, "card")
		return *limits, err
	}
	cards, err := all[api.Card](ctx, h, api.ListQuery{Kind: api.KindCard, Organization: org.Meta.ID})
	if err != nil {
		return *limits, err
	}
	for _, c := range cards {
		if c.Status.Default && c.Usable(h.opts.Now()) == nil {
			return *limits, nil
		}
	}
	return *limits, api.Errorf(api.CodeState, "organization %s has no valid default card on file", org.Meta.Name).At("card").WithHint("add a card, or choose another default")
}

// chargedCard returns a card of an organization that can be charged now.
func (h *handlers) chargedCard(ctx context.Context, org api.Organization, id api.CardID, field string) (api.Card, error) {
	c, err := get[api.Card](ctx, h, api.KindCard, string(id), org.Meta.ID, "")
	if err == nil && c.Meta.Organization != org.Meta.ID {
		err = notFound(api.KindCard, string(id))
	}
	if err != nil {
		return c, at(err, field)
	}
	if err := c.Usable(h.opts.Now()); err != nil {
		return c, err
	}
	return c, nil
}
