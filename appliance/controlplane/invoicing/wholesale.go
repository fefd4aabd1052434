package invoicing

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// maxMergedUse is how many rows of each customer are read at once, as many are read
// beside each other.
const maxMergedUse = 256

// charged hands out what an organization pays for: its own use and, of a reseller with
// wholesale terms, its customers', in the order of api.Use.Compare.
func (b Books) charged(ctx context.Context, org api.OrganizationID, from, to time.Time) (iter.Seq2[api.Use, error], error) {
	own := b.use(ctx, org, from, to, api.MaxUse)
	o, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(org))
	if err != nil || o.Spec.Billing == nil || len(o.Spec.Billing.Wholesale) == 0 {
		return own, err
	}
	customers, err := b.customers(ctx, org)
	if err != nil {
		return nil, err
	}
	all := []iter.Seq2[api.Use, error]{own}
	for _, w := range o.Spec.Billing.Wholesale {
		from, to := w.Within(from, to)
		if !from.Before(to) {
			continue
		}
		for _, c := range customers {
			all = append(all, ofCustomer(c, b.use(ctx, api.OrganizationID(c.Meta.ID), from, to, maxMergedUse)))
		}
	}
	return merged(all), nil
}

// customers of a reseller, in the order of their IDs.
func (b Books) customers(ctx context.Context, reseller api.OrganizationID) ([]api.Organization, error) {
	all, err := api.All[api.Organization](ctx, b.Store, api.ListQuery{Kind: api.KindOrganization, Organization: string(reseller)})
	all = slices.DeleteFunc(all, func(o api.Organization) bool { return o.Spec.Parent != reseller })
	slices.SortFunc(all, func(a, b api.Organization) int { return cmp.Compare(a.Meta.ID, b.Meta.ID) })
	return all, err
}

// ofCustomer is a customer's use, marked as such.
func ofCustomer(c api.Organization, use iter.Seq2[api.Use, error]) iter.Seq2[api.Use, error] {
	return func(yield func(api.Use, error) bool) {
		for u, err := range use {
			u.Customer, u.CustomerName = api.OrganizationID(c.Meta.ID), c.Meta.Name
			if !yield(u, err) {
				return
			}
		}
	}
}

// touchSellers adds to what was touched the sellers of whoever has used something, as
// they may pay for it.
func (j *Job) touchSellers(ctx context.Context, t api.Touched) error {
	for _, id := range slices.Sorted(maps.Keys(t.Organizations)) {
		touch := t.Organizations[id]
		if id == "" || !touch.Has(api.KindUsageRecord) {
			continue
		}
		seller, known := j.parents[id]
		if !known {
			o, err := find[api.Organization](ctx, j.Books.Store, api.KindOrganization, id)
			if err != nil {
				return err
			}
			seller = string(o.Spec.Parent)
			j.parents[id] = seller
		}
		if seller != "" {
			t.Organizations[seller] = usedBy(t.Organizations[seller], touch.Hour)
		}
	}
	return nil
}

// usedBy is a touch of somebody who also pays for use of an hour that has changed.
func usedBy(t api.Touch, hour time.Time) api.Touch {
	if !t.Has(api.KindUsageRecord) {
		t.Kinds = append(t.Kinds, api.KindUsageRecord)
		t.Hour = hour
	} else if hour.Before(t.Hour) {
		t.Hour = hour
	}
	return t
}

// UninvoicedWholesale is what an organization has used until now that its reseller is
// charged for and no invoice of the reseller's charges yet: the reseller's prices of it.
// The mark is of all that it has used since, also where it costs nothing.
func (b Books) UninvoicedWholesale(ctx context.Context, id api.OrganizationID, now time.Time) (u api.Uninvoiced, err error) {
	org, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil || org.Spec.Parent == "" {
		return u, err
	}
	seller, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(org.Spec.Parent))
	if err != nil || seller.Spec.Billing == nil || len(seller.Spec.Billing.Wholesale) == 0 {
		return u, err
	}
	d, err := b.documents(ctx, org.Spec.Parent)
	if err != nil {
		return u, err
	}
	zone, err := seller.Spec.Billing.Zone()
	if err != nil {
		return u, err
	}
	open, present := invoice.Open(seller.Spec.Billing.Since, d.Invoices, zone, now)
	u.Mark.From = present
	if len(open) > 0 {
		u.Mark.From = open[0].From
	}
	if err := addAll(b.use(ctx, id, u.Mark.From, time.Time{}, api.MaxUse), func(use api.Use) error { u.Mark.Add(use); return nil }); err != nil {
		return u, err
	}
	for _, w := range seller.Spec.Billing.Wholesale {
		from, to := w.Within(u.Mark.From, now.UTC().Truncate(time.Hour).Add(time.Hour))
		if !from.Before(to) {
			continue
		}
		p, err := b.resold(ctx, org, from, to)
		if err != nil {
			return u, err
		}
		u.Currency = p.Currency
		for _, l := range p.Lines {
			if l.Kind == api.LineUsage { // fees, minimum and taxes do not depend on it
				u.Micros += l.AmountMicros
			}
		}
	}
	return u, nil
}

// resold is what a reseller pays for a customer's use of a period.
func (b Books) resold(ctx context.Context, customer api.Organization, from, to time.Time) (api.InvoicePreview, error) {
	prices, err := b.held(ctx, customer.Spec.Parent, from, to)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	r, err := invoice.NewRating(customer.Spec.Parent, prices, from, to)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	use := b.use(ctx, api.OrganizationID(customer.Meta.ID), from, to, api.MaxUse)
	if err := addAll(ofCustomer(customer, use), r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	return r.Invoice()
}

// merged is the use of several organizations, each in the order of api.Use.Compare, in
// that order. It ends with the first error.
func merged(all []iter.Seq2[api.Use, error]) iter.Seq2[api.Use, error] {
	return func(yield func(api.Use, error) bool) {
		var q queue
		for _, seq := range all {
			next, stop := iter.Pull2(seq)
			defer stop()
			if u, err, more := next(); err != nil {
				yield(u, err)
				return
			} else if more {
				q = append(q, source{u, next})
			}
		}
		heap.Init(&q)
		for len(q) > 0 {
			s := &q[0]
			if !yield(s.head, nil) {
				return
			}
			u, err, more := s.next()
			switch {
			case err != nil:
				yield(u, err)
				return
			case more:
				s.head = u
				heap.Fix(&q, 0)
			default:
				heap.Pop(&q)
			}
		}
	}
}

// source is an organization's use from head on.
type source struct {
	head api.Use
	next func() (api.Use, error, bool)
}

// queue is a heap of sources, the one whose head comes first at its top.
type queue []source

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].head.Compare(q[j].head) < 0 }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(source)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = source{}
	*q = (*q)[:last]
	return s
}
