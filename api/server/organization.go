package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// organizationSpec replaces names with IDs and validates. A change must leave out the
// parent or repeat it.
func (h *handlers) organizationSpec(ctx context.Context, old, s api.OrganizationSpec) (api.OrganizationSpec, error) {
	var err, bookErr, offersErr error
	if s.Suspended, err = h.suspension(ctx, old.Suspended, s.Suspended); err != nil {
		return s, err
	}
	s.Restricted = old.Restricted
	s.Billing = api.DefaultBilling(old.Billing, s.Billing, h.opts.Now())
	invalid := api.ValidateOrganization(s)
	if len(s.Offers) > api.MaxOffers {
		return s, invalid
	}
	s.PriceBook, bookErr = h.priceBook(ctx, s.PriceBook, old.PriceBook, cmp.Or(old.Parent, s.Parent))
	s.Offers, offersErr = h.offers(ctx, old.Offers, s.Offers)
	return s, api.Join(invalid, at(bookErr, "spec.priceBook"), offersErr)
}

// assigned returns a changed organization's spec with the time at which a new price
// book takes effect. The currency cannot change once there is usage.
func (h *handlers) assigned(ctx context.Context, old api.Organization, s api.OrganizationSpec) (api.OrganizationSpec, error) {
	s, err := api.AssignedPriceBook(old.Spec, s, h.opts.Now())
	if err != nil || s.PriceBook == old.Spec.PriceBook || h.opts.Billing == nil {
		return s, err
	}
	was, err := h.opts.Billing.Currency(ctx, api.OrganizationID(old.Meta.ID))
	if api.CodeOf(err) == api.CodeState { // it has no prices yet
		return api.NewAssignment(s), nil
	}
	if err != nil {
		return s, fmt.Errorf("read the currency of organization %s: %w", old.Meta.ID, err)
	}
	is, err := h.currencyOf(ctx, s.PriceBook)
	if err != nil || is == was {
		return s, at(err, "spec.priceBook")
	}
	used, err := h.opts.Billing.Uninvoiced(ctx, api.OrganizationID(old.Meta.ID), h.opts.Now().UTC())
	if err != nil {
		return s, fmt.Errorf("read the usage of organization %s without an invoice: %w", old.Meta.ID, err)
	}
	if used.Mark.Quantity > 0 {
		return s, api.Errorf(api.CodeInvalid, "organization %s has usage charged in %s, but the price book is in %s", old.Meta.Name, was, is).
			At("spec.priceBook").WithHint("choose a price book in %s", was)
	}
	return api.NewAssignment(s), nil
}

// currencyOf returns the currency of a price book, given by ID; empty means the one
// named default.
func (h *handlers) currencyOf(ctx context.Context, id api.PriceBookID) (string, error) {
	o, err := h.find(ctx, api.KindPriceBook, cmp.Or(string(id), api.DefaultPriceBook), "", "")
	if err != nil {
		return "", err
	}
	book, err := api.Decode[api.PriceBook](o)
	return book.Spec.Currency, err
}

// priceBook returns the ID of the requested price book, which must be one that the
// caller may assign to the customer or one that the customer already has. It belongs to
// the cluster or to the customer's reseller.
func (h *handlers) priceBook(ctx context.Context, ref, had api.PriceBookID, reseller api.OrganizationID) (api.PriceBookID, error) {
	if ref == "" || ref == had {
		return ref, nil
	}
	o, err := h.find(ctx, api.KindPriceBook, string(ref), "", "")
	if err == nil && o.Meta.Organization != "" && o.Meta.Organization != string(reseller) {
		return "", api.Errorf(api.CodeInvalid, "price book %s is a reseller's, for its own customers", o.Meta.Name).WithHint("choose a price book of the cluster or of the organization's reseller")
	}
	return api.PriceBookID(o.Meta.ID), err
}

// offers returns the IDs of a reseller's price books, which only operators can change.
func (h *handlers) offers(ctx context.Context, old, refs []api.PriceBookID) ([]api.PriceBookID, error) {
	if slices.Equal(old, refs) {
		return old, nil
	}
	if who(ctx).Role != api.RoleOperator {
		return nil, api.Errorf(api.CodeForbidden, "only an operator may change the price books that a reseller offers").At("spec.offers").WithHint("leave it unchanged")
	}
	var out []api.PriceBookID
	var bad []error
	for i, ref := range refs {
		id, err := h.priceBook(ctx, ref, "", "")
		bad = append(bad, at(err, fmt.Sprintf("spec.offers[%d]", i)))
		out = append(out, id)
	}
	return out, api.Join(bad...)
}

// CreateOrganization creates an organization.
func (h *handlers) CreateOrganization(ctx context.Context, r in[api.CreateOrganizationParams, api.Organization]) (*api.Organization, error) {
	if r.Body.Spec.Parent == "" { // in the form in which it is read, so that a file can be applied again
		r.Body.Spec.Parent = api.OrganizationID(r.Body.Meta.Organization)
	}
	r.Body.Meta.Organization = ""
	m, placeErr := h.place(ctx, api.KindOrganization, r.Body.Meta)
	if placeErr != nil && !ofMeta(placeErr) {
		return nil, placeErr
	}
	parent, err := h.parent(ctx, string(r.Body.Spec.Parent))
	r.Body.Spec.Parent = parent
	spec, specErr := h.organizationSpec(ctx, api.OrganizationSpec{}, r.Body.Spec)
	if err := api.Join(placeErr, specErr, err, api.ChangedWholesale(api.OrganizationSpec{}, spec, h.opts.Now())); err != nil {
		return nil, err
	}
	spec = api.NewAssignment(spec)
	// It belongs to its reseller: names are unique among the customers of one reseller.
	if m.Organization = string(spec.Parent); m.Organization != "" {
		if err := h.active(ctx, m.Organization); err != nil {
			return nil, err
		}
	}
	o, err := create[api.Organization](ctx, h, api.KindOrganization, newID(api.KindOrganization), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// changeOrganization changes name, labels and spec. The billing terms can be removed,
// or moved past existing usage, only after that usage was invoiced.
func (h *handlers) changeOrganization(ctx context.Context, ref string, to api.Organization) (*api.Organization, error) {
	var o api.Organization
	err := h.settled(func() (err error) {
		o, err = h.updateOrganization(ctx, ref, to)
		return err
	})
	return &o, err
}

func (h *handlers) updateOrganization(ctx context.Context, ref string, to api.Organization) (api.Organization, error) {
	var used *api.UseMark
	return update(ctx, h, api.KindOrganization, ref, to.Meta, func(old api.Organization) (any, error) {
		s, err := h.organizationSpec(ctx, old.Spec, to.Spec)
		if err != nil {
			return nil, err
		}
		if s, err = h.assigned(ctx, old, s); err != nil {
			return nil, err
		}
		if s.Parent == "" {
			s.Parent = old.Spec.Parent
		} else if s.Parent, err = h.parent(ctx, string(s.Parent)); err != nil {
			return nil, err
		}
		if err := api.Join(api.ChangeOrganization(old.Spec, s), api.ChangedWholesale(old.Spec, s, h.opts.Now())); err != nil {
			return nil, err
		}
		if was := old.Spec.Billing; was != nil && (s.Billing == nil || s.Billing.Since.After(was.Since)) {
			used, err = h.charged(ctx, old)
		}
		return s, err
	}, func(c *api.Command) { c.Used = used })
}

// settled repeats a decision, a few times, if the store reports that it was based on
// outdated usage.
func (h *handlers) settled(decide func() error) (err error) {
	for range 3 {
		var e *api.Error
		if err = decide(); !errors.As(err, &e) || e.Code != api.CodeConflict {
			break
		}
	}
	return err
}

// charged refuses if the organization has usage that no invoice charges yet. The store
// checks the returned mark and refuses a decision based on it when there is later
// usage; a nil mark needs no check.
func (h *handlers) charged(ctx context.Context, org api.Organization) (*api.UseMark, error) {
	if org.Spec.Billing == nil || h.opts.Billing == nil {
		return nil, nil
	}
	u, err := h.opts.Billing.Uninvoiced(ctx, api.OrganizationID(org.Meta.ID), h.opts.Now().UTC())
	if err != nil {
		return nil, fmt.Errorf("read the usage of organization %s without an invoice: %w", org.Meta.ID, err)
	}
	if u.Micros > 0 {
		return nil, api.Errorf(api.CodeInUse, "organization %s has usage that is not invoiced yet: %d.%06d %s", org.Meta.Name, u.Micros/1e6, u.Micros%1e6, u.Currency).
			At("spec.billing").WithHint("issue its final invoice, or wait for the invoice of the month; until then the organization cannot be deleted, nor its billing terms changed")
	}
	return &u.Mark, nil
}

// chargedToReseller refuses if a customer has usage that its reseller is charged for
// and no invoice contains yet, since usage is found by the organization. The mark is
// that of charged.
func (h *handlers) chargedToReseller(ctx context.Context, org api.Organization) (*api.UseMark, error) {
	if org.Spec.Parent == "" || h.opts.Billing == nil {
		return nil, nil
	}
	u, err := h.opts.Billing.UninvoicedWholesale(ctx, api.OrganizationID(org.Meta.ID), h.opts.Now().UTC())
	if err != nil {
		return nil, fmt.Errorf("read the usage of organization %s that its reseller is not invoiced for: %w", org.Meta.ID, err)
	}
	if u.Mark.From.IsZero() {
		return nil, nil
	}
	if u.Micros > 0 {
		return nil, api.Errorf(api.CodeInUse, "organization %s has usage that its reseller is not invoiced for yet: %d.%06d %s", org.Meta.Name, u.Micros/1e6, u.Micros%1e6, u.Currency).
			WithHint("issue the final invoice of the reseller, or wait for its invoice of the month; until then the organization cannot be deleted")
	}
	return &u.Mark, nil
}

// DeleteOrganization deletes an organization that is not in use and has no uninvoiced
// usage.
func (h *handlers) DeleteOrganization(ctx context.Context, r in[none, none]) (*api.Organization, error) {
	var o api.Organization
	err := h.settled(func() error {
		owned, err := h.own(ctx, api.KindOrganization, r.ID)
		if err != nil {
			return err
		}
		org, err := api.Decode[api.Organization](owned)
		if err != nil {
			return err
		}
		used, err := h.charged(ctx, org)
		if err != nil {
			return err
		}
		resold, err := h.chargedToReseller(ctx, org)
		if err != nil {
			return err
		}
		if used == nil || resold != nil && resold.From.Before(used.From) {
			used = resold
		}
		brand, err := h.ofSeller(ctx, org.Meta.ID)
		if err != nil {
			return err
		}
		providers, err := h.ownProviders(ctx, org.Meta.ID)
		if err != nil {
			return err
		}
		out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: append(append(providers, api.Command{
			Op: api.OpDelete, Kind: api.KindOrganization, ID: org.Meta.ID, Expect: org.Meta.Revision, Used: used,
		}), brand...)})
		if err == nil {
			o, err = decode[api.Organization](out[len(providers)])
		}
		return err
	})
	return &o, err
}
