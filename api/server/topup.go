package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// topUp defines the automatic top-up of an organization. A change forgets the failures of
// earlier charges.
func (h *handlers) topUp() settings[api.GetTopUpParams, api.StoredTopUp, api.TopUp] {
	return settings[api.GetTopUpParams, api.StoredTopUp, api.TopUp]{
		what: "top-up",
		unset: func(ctx context.Context, _ string, p api.GetTopUpParams) (api.Object, error) {
			return h.unsetOfPayer(ctx, api.KindTopUp, p.Organization, api.TopUpID)
		},
		view: h.topUpView,
		spec: h.topUpSpec,
		beside: func(old api.StoredTopUp) []api.Command {
			id := api.TopUpID(api.OrganizationID(old.Meta.Organization))
			return []api.Command{{Op: api.OpReport, Kind: api.KindTopUp, ID: id, Expect: api.AnyRevision, Data: api.Encode(old.Status.Saved())}}
		},
	}
}

// unsetOfPayer returns settings of the organization that a request about money names, or of
// the caller's, as they are before their first change.
func (h *handlers) unsetOfPayer(ctx context.Context, kind api.Kind, organization string, idOf func(api.OrganizationID) string) (api.Object, error) {
	now := h.opts.Now()
	org, err := h.payer(ctx, organization, now, now.Add(1))
	id := idOf(org)
	return api.Object{Kind: kind, Meta: api.Meta{ID: id, Name: id, Organization: string(org)}}, err
}

// topUpView returns the settings in the form of the API, with the organization's
// currency if none was saved.
func (h *handlers) topUpView(ctx context.Context, t api.StoredTopUp) (view api.TopUp, err error) {
	if view = t.View(); view.Currency == "" {
		view.Currency, err = h.opts.Billing.Currency(ctx, view.Organization)
	}
	if err != nil {
		return view, fmt.Errorf("read the currency of organization %s: %w", view.Organization, err)
	}
	return view, nil
}

func (h *handlers) topUpSpec(ctx context.Context, old api.StoredTopUp, t api.TopUp) (any, error) {
	org, err := get[api.Organization](ctx, h, api.KindOrganization, old.Meta.Organization, "", "")
	if err != nil {
		return nil, err
	}
	spec := t.Spec()
	if spec.Currency, err = h.opts.Billing.Currency(ctx, api.OrganizationID(org.Meta.ID)); err != nil {
		return nil, fmt.Errorf("read the currency of organization %s: %w", org.Meta.ID, err)
	}
	limits, err := h.topUpLimits(ctx, org, spec)
	if err != nil {
		return nil, err
	}
	return spec, api.ValidateTopUp(spec, limits)
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
	case limits == nil:
		return api.CardPayments{}, noCards(org)
	case org.Spec.Billing == nil || org.Spec.Billing.Mode != api.BillingPrepaid:
		return api.CardPayments{}, api.Errorf(api.CodeState, "organization %s does not pay in advance", org.Meta.Name).WithHint("only what is paid in advance can be topped up")
	}
	return *limits, h.checkAutomaticCard(ctx, org, s.Card)
}

// noCards returns the error of an automatic charge of an organization that cannot pay by
// card.
func noCards(org api.Organization) error {
	if org.Spec.Parent != "" {
		return api.Errorf(api.CodeState, "organization %s pays its reseller", org.Meta.Name).WithHint("ask your reseller how to pay")
	}
	return api.Errorf(api.CodeState, "online payments are disabled").WithHint("ask your administrator")
}

// checkAutomaticCard returns an error unless a card that is to be charged automatically,
// or without an ID the organization's default card, can be charged now.
func (h *handlers) checkAutomaticCard(ctx context.Context, org api.Organization, id api.CardID) error {
	if id != "" {
		_, err := h.chargedCard(ctx, org, id, "card")
		return err
	}
	cards, err := all[api.Card](ctx, h, api.ListQuery{Kind: api.KindCard, Organization: org.Meta.ID})
	if err != nil {
		return err
	}
	for _, c := range cards {
		if c.Status.Default && c.Usable(h.opts.Now()) == nil {
			return nil
		}
	}
	return api.Errorf(api.CodeState, "organization %s has no valid default card on file", org.Meta.Name).At("card").WithHint("add a card, or choose another default")
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
