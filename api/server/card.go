package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// CreateCard begins to save a card. The object is stored before the provider is
// contacted, so that a retry with the same key requests the same page.
func (h *handlers) CreateCard(ctx context.Context, r in[api.CreateCardParams, api.Card]) (*api.Card, error) {
	if err := api.ValidateLabels(r.Body.Meta.Labels); err != nil {
		return nil, err
	}
	org, err := get[api.Organization](ctx, h, api.KindOrganization, cmp.Or(r.Body.Meta.Organization, who(ctx).Org), "", "")
	if err != nil {
		return nil, at(err, "meta.organization")
	}
	cards, err := h.cards(ctx, org)
	switch {
	case err != nil:
		return nil, err
	case org.Spec.Parent != "":
		return nil, api.Errorf(api.CodeState, "organization %s pays its reseller", org.Meta.Name).At("meta.organization").WithHint("ask your reseller how to pay")
	case cards == nil:
		return nil, api.Errorf(api.CodeState, "online payments are disabled").WithHint("pay as your invoices say, or ask your administrator")
	}
	b := api.Batch{At: h.opts.Now().UTC()}
	if b.ID, err = batchID(ctx, api.KindCard, r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	id := newID(api.KindCard)
	b.Commands = []api.Command{{Op: api.OpPutSpec, Kind: api.KindCard, ID: id, Name: id, Organization: org.Meta.ID, Labels: r.Body.Meta.Labels, Data: api.Encode(r.Body.Spec)}}
	if id, err = h.putCard(ctx, org, b); err != nil {
		return nil, err
	}
	made, err := h.opts.Store.Get(ctx, api.KindCard, id) // the current state, also of a card that an earlier attempt created
	if err != nil {
		return nil, fmt.Errorf("read card %s: %w", id, err)
	}
	c, err := api.Decode[api.Card](made)
	if err != nil {
		return nil, err
	}
	if c, err = h.opts.Payments.BeginCard(ctx, c); err != nil {
		return nil, fmt.Errorf("create the page for card %s: %w", id, err)
	}
	return &c, nil
}

// putCard stores a card unless the organization has too many, and returns its ID; a
// repeated batch returns the same ID. The lock is local, so concurrent requests on
// several nodes may exceed the limit by one each.
func (h *handlers) putCard(ctx context.Context, org api.Organization, b api.Batch) (string, error) {
	h.checkouts.Lock()
	defer h.checkouts.Unlock()
	cards, err := all[api.Card](ctx, h, api.ListQuery{Kind: api.KindCard, Organization: org.Meta.ID})
	if err != nil {
		return "", err
	}
	n := 0
	for _, c := range cards {
		if !c.Ended() {
			n++
		}
	}
	if n >= api.MaxCards {
		return "", api.Errorf(api.CodeRateLimited, "organization %s has %d cards, at most %d are allowed", org.Meta.Name, n, api.MaxCards).
			WithHint("remove a card, or wait an hour until pages that were not completed expire")
	}
	out, err := h.opts.Store.Apply(ctx, b)
	if err != nil {
		return "", fmt.Errorf("create a card of organization %s: %w", org.Meta.ID, err)
	}
	return out[0].Meta.ID, nil
}

// ownCard returns a card that the caller may change.
func (h *handlers) ownCard(ctx context.Context, ref string) (api.Card, error) {
	o, err := h.own(ctx, api.KindCard, ref)
	if err != nil {
		return api.Card{}, err
	}
	if h.opts.Payments == nil {
		return api.Card{}, api.Errorf(api.CodeState, "online payments are disabled")
	}
	return api.Decode[api.Card](o)
}

// DeleteCard removes a card at the provider before it deletes the object, so that a
// card whose removal failed can be removed again.
func (h *handlers) DeleteCard(ctx context.Context, r in[none, none]) (*api.Card, error) {
	c, err := h.ownCard(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if c.Pending() {
		return nil, api.Errorf(api.CodeState, "card %s: state is %s, want %s", c.Meta.ID, cmp.Or(c.Status.State, api.CardOpening), api.CardSaved).
			WithHint("complete the page on which the card is entered, or wait until it expires")
	}
	pays, err := all[api.Checkout](ctx, h, api.ListQuery{Kind: api.KindCheckout, Organization: c.Meta.Organization})
	if err != nil {
		return nil, err
	}
	for _, p := range pays {
		if p.Spec.Card == api.CardID(c.Meta.ID) && !p.Done() {
			return nil, api.Errorf(api.CodeState, "card %s is being charged (%s)", c.Meta.ID, p.Meta.ID).WithHint("try again when that payment has ended")
		}
	}
	if want := expected(ctx); want == api.AnyRevision || want == c.Meta.Revision { // otherwise nothing is removed: the deletion is refused
		if err := h.opts.Payments.DetachCard(ctx, c); err != nil {
			return nil, fmt.Errorf("remove card %s from the payment provider: %w", c.Meta.ID, err)
		}
	}
	gone, err := remove[api.Card](ctx, h, api.KindCard, c.Meta.ID)
	return &gone, err
}

// SetDefaultCard makes a card the default of its organization.
func (h *handlers) SetDefaultCard(ctx context.Context, r in[none, none]) (*api.Card, error) {
	c, err := h.ownCard(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	if c, err = h.opts.Payments.SetDefaultCard(ctx, c); err != nil {
		return nil, fmt.Errorf("make card %s the default: %w", r.ID, err)
	}
	return &c, nil
}
