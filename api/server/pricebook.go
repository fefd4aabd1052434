package server

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// priceBookSpec validates a new price book, which belongs to the cluster or to a
// reseller.
func (h *handlers) priceBookSpec(ctx context.Context, m api.Meta, _ *api.PriceBook, s api.PriceBookSpec) (api.PriceBookSpec, error) {
	var bad error
	if me := who(ctx); me.Role == api.RoleReseller && m.Organization != me.Org {
		bad = api.Errorf(api.CodeInvalid, "a reseller's price books are its own").At("meta.organization").WithHint("omit it")
	} else if m.Organization != "" {
		bad = at(h.maySell(ctx, m.Organization), "meta.organization")
	}
	return api.NewPriceBook(s), api.Join(bad, ownPriceBookName(m.Organization, m.Name), api.ValidatePriceBook(s))
}

// ownPriceBookName refuses a reseller's price book with the name of the cluster's
// default one.
func ownPriceBookName(organization, name string) error {
	if organization == "" || name != api.DefaultPriceBook {
		return nil
	}
	return api.Errorf(api.CodeInvalid, "%s is the name of the cluster's price book for organizations that name none", name).At("meta.name").WithHint("choose another name")
}

// changePriceBook creates a new version of the price book from a given time, and keeps
// the previous one.
func (h *handlers) changePriceBook(ctx context.Context, ref string, to api.PriceBook) (*api.PriceBook, error) {
	o, err := updateBeside(ctx, h, api.KindPriceBook, ref, to.Meta, func(old api.PriceBook) (any, []api.Command, error) {
		if err := api.Join(ownPriceBookName(old.Meta.Organization, to.Meta.Name), api.ValidatePriceBook(to.Spec), api.ChangePriceBook(old.Spec, to.Spec)); err != nil {
			return nil, nil, err
		}
		if to.Meta.Name != "" && to.Meta.Name != old.Meta.Name {
			if err := h.paidByName(ctx, old); err != nil {
				return nil, nil, err
			}
		}
		s, keep, err := api.ChangedPriceBook(api.PriceBookID(old.Meta.ID), old.Spec, to.Spec, h.opts.Now())
		return s, keep, err
	})
	return &o, err
}

// deletedPriceBook keeps the last version, which rates the usage in its period.
func (h *handlers) deletedPriceBook(ctx context.Context, o api.PriceBook) ([]api.Command, error) {
	if err := h.paidByName(ctx, o); err != nil {
		return nil, err
	}
	return api.DeletedPriceBook(api.PriceBookID(o.Meta.ID), o.Spec), nil
}

// paidByName refuses to rename or delete the default price book while organizations use
// it.
func (h *handlers) paidByName(ctx context.Context, o api.PriceBook) error {
	if o.Meta.Name != api.DefaultPriceBook {
		return nil
	}
	var by string
	err := h.each(ctx, api.ListQuery{Kind: api.KindOrganization}, func(o api.Object) bool {
		org, err := api.Decode[api.Organization](o)
		if err == nil && org.Spec.PriceBook == "" {
			by = o.Meta.Name
		}
		return by == ""
	})
	if err == nil && by != "" {
		err = api.Errorf(api.CodeInUse, "organization %s has no price book of its own and pays by price book %s", by, api.DefaultPriceBook).
			WithHint("change its prices instead: past usage keeps its price")
	}
	return err
}

// ListPriceBookVersions pages through the versions of a price book, the newest first.
func (h *handlers) ListPriceBookVersions(ctx context.Context, r in[api.ListPriceBookVersionsParams, none]) (*api.PriceBookVersionList, error) {
	o, err := h.own(ctx, api.KindPriceBook, r.ID)
	if err != nil {
		return nil, err
	}
	book, err := decode[api.PriceBook](o)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(r.Params.Limit, 100)
	if limit < 1 || limit > maxLimit {
		return nil, api.Errorf(api.CodeInvalid, "must be between 1 and %d", maxLimit).At("limit")
	}
	out := api.PriceBookVersionList{Items: []api.PriceBookSpec{}}
	last := book.Spec.Version - 1 // of those stored separately from the book
	if c := r.Params.Continue; c == "" {
		out.Items = append(out.Items, book.Spec)
	} else if last, err = strconv.ParseInt(c, 10, 64); err != nil || last < 1 || last >= book.Spec.Version {
		return nil, api.Errorf(api.CodeInvalid, "is not a token from a previous page").At("continue")
	}
	for v := last; v >= 1; v-- {
		if len(out.Items) == limit {
			out.Continue = strconv.FormatInt(v, 10)
			break
		}
		o, err := h.opts.Store.Get(ctx, api.KindPriceBookVersion, api.PriceBookVersionID(api.PriceBookID(book.Meta.ID), v))
		if err != nil {
			return nil, fmt.Errorf("read version %d of price book %s: %w", v, book.Meta.ID, err)
		}
		kept, err := api.Decode[api.PriceBookVersion](o)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, kept.Spec.Prices)
	}
	return &out, nil
}

// SimulatePriceBook returns what organizations would have paid by the price book.
func (h *handlers) SimulatePriceBook(ctx context.Context, r in[api.SimulatePriceBookParams, none]) (*api.Simulation, error) {
	book, err := get[api.PriceBook](ctx, h, api.KindPriceBook, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	org := api.OrganizationID("")
	if r.Params.Organization != "" {
		if org, err = h.payer(ctx, r.Params.Organization, r.Params.From, r.Params.To); err != nil {
			return nil, err
		}
	}
	switch {
	case h.opts.Billing == nil:
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	case !r.Params.From.Before(r.Params.To) || r.Params.To.Sub(r.Params.From) > maxSimulated:
		return nil, api.Errorf(api.CodeInvalid, "cannot simulate the period from %s to %s", r.Params.From, r.Params.To).At("to").WithHint("must be after from, and at most two years later")
	}
	of := api.SimulationQuery{Book: book, Organization: org, From: r.Params.From.UTC(), To: r.Params.To.UTC()}
	if me := who(ctx); me.Role == api.RoleReseller {
		of.Seller = api.OrganizationID(me.Org)
	}
	s, err := h.opts.Billing.Simulate(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("simulate price book %s: %w", r.ID, err)
	}
	return &s, nil
}

// maxSimulated limits the period of one simulation.
const maxSimulated = 2 * 366 * 24 * time.Hour
