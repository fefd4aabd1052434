package invoicing

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// maxMergedUse is how many rows of each customer are read at once, when the use of many
// is merged.
const maxMergedUse = 256

// charged yields the use that an organization pays for: its own and, for a reseller
// with wholesale terms, its customers', in the order of api.Use.Compare.
func (b Billing) charged(ctx context.Context, org api.OrganizationID, from, to time.Time) (iter.Seq2[api.Use, error], error) {
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
			all = append(all, ofCustomer(c.charged, b.use(ctx, c.of, from, to, maxMergedUse)))
		}
	}
	return merged(all), nil
}

// customer is an organization whose use a reseller pays for.
type customer struct {
	of      api.OrganizationID
	charged api.Organization // the direct customer that the use is charged as: itself, or the customer above it
}

// customers returns the customers of a reseller and those below them.
func (b Billing) customers(ctx context.Context, reseller api.OrganizationID) (out []customer, err error) {
	direct, err := b.customersOf(ctx, reseller)
	for _, d := range direct {
		level := []api.OrganizationID{api.OrganizationID(d.Meta.ID)}
		for range api.MaxOrganizationDepth {
			var next []api.OrganizationID
			for _, id := range level {
				out = append(out, customer{id, d})
				below, err := b.customersOf(ctx, id)
				if err != nil {
					return nil, err
				}
				for _, o := range below {
					next = append(next, api.OrganizationID(o.Meta.ID))
				}
			}
			level = next
		}
	}
	return out, err
}

func (b Billing) customersOf(ctx context.Context, reseller api.OrganizationID) ([]api.Organization, error) {
	all, err := api.All[api.Organization](ctx, b.Store, api.ListQuery{Kind: api.KindOrganization, Organization: string(reseller)})
	return slices.DeleteFunc(all, func(o api.Organization) bool { return o.Spec.Parent != reseller }), err
}

// ofCustomer yields use marked as a customer's.
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

// touchSellers adds to the touched organizations the sellers of each one that has used
// something, as they may pay for it.
func (j *Job) touchSellers(ctx context.Context, t api.Touched) error {
	for _, id := range slices.Sorted(maps.Keys(t.Organizations)) {
		touch := t.Organizations[id]
		if id == "" || !touch.Has(api.KindUsageRecord) {
			continue
		}
		for range api.MaxOrganizationDepth {
			var err error
			if id, err = j.sellerOf(ctx, id); err != nil {
				return err
			}
			if id == "" {
				break
			}
			t.Organizations[id] = usedBy(t.Organizations[id], touch.Hour)
		}
	}
	return nil
}

// sellerOf returns the seller of an organization, which does not change, or an empty
// string.
func (j *Job) sellerOf(ctx context.Context, id string) (string, error) {
	seller, known := j.parents[id]
	if !known {
		o, err := find[api.Organization](ctx, j.Billing.Store, api.KindOrganization, id)
		if err != nil {
			return "", err
		}
		seller = string(o.Spec.Parent)
		j.parents[id] = seller
	}
	return seller, nil
}

// usedBy returns the touch of an organization that also pays for changed use of an
// hour.
func usedBy(t api.Touch, hour time.Time) api.Touch {
	if !t.Has(api.KindUsageRecord) {
		t.Kinds = append(t.Kinds, api.KindUsageRecord)
		t.Hour = hour
	} else if hour.Before(t.Hour) {
		t.Hour = hour
	}
	return t
}

// UninvoicedWholesale returns what an organization has used until now that a reseller
// above it is charged for and no invoice of that reseller charges yet: by the prices of
// the nearest reseller that owes anything. The mark covers everything that it has used
// since the earliest hour without an invoice, also where that costs nothing.
func (b Billing) UninvoicedWholesale(ctx context.Context, id api.OrganizationID, now time.Time) (u api.Uninvoiced, err error) {
	org, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return u, err
	}
	for range api.MaxOrganizationDepth {
		if org.Spec.Parent == "" {
			break
		}
		seller, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(org.Spec.Parent))
		if err != nil {
			return u, err
		}
		if err := b.owedBy(ctx, seller, id, now, &u); err != nil {
			return u, err
		}
		org = seller
	}
	if u.Mark.From.IsZero() {
		return u, nil
	}
	return u, addAll(b.use(ctx, id, u.Mark.From, time.Time{}, api.MaxUse), func(use api.Use) error { u.Mark.Add(use); return nil })
}

// owedBy adds what a reseller owes for a customer's use since its last invoice, unless
// something is owed already, and moves the mark back to where that begins.
func (b Billing) owedBy(ctx context.Context, seller api.Organization, id api.OrganizationID, now time.Time, u *api.Uninvoiced) error {
	terms := seller.Spec.Billing
	if terms == nil || len(terms.Wholesale) == 0 {
		return nil
	}
	d, err := b.documents(ctx, api.OrganizationID(seller.Meta.ID))
	if err != nil {
		return err
	}
	zone, err := terms.Zone()
	if err != nil {
		return err
	}
	open, present := invoice.Open(terms.Since, d.Invoices, zone, now)
	since := append(open, present)[0].From
	if u.Mark.From.IsZero() || since.Before(u.Mark.From) {
		u.Mark.From = since
	}
	for _, w := range terms.Wholesale {
		from, to := w.Within(since, now.UTC().Truncate(time.Hour).Add(time.Hour))
		if u.Micros > 0 || !from.Before(to) {
			continue
		}
		p, err := b.resold(ctx, api.OrganizationID(seller.Meta.ID), id, from, to)
		if err != nil {
			return err
		}
		u.Currency = p.Currency
		for _, l := range p.Lines {
			if l.Kind == api.LineUsage { // fees, minimum and taxes do not depend on the customer's use
				u.Micros += l.AmountMicros
			}
		}
	}
	return nil
}

// resold returns what a reseller pays for a customer's use of a period.
func (b Billing) resold(ctx context.Context, seller, customer api.OrganizationID, from, to time.Time) (api.InvoicePreview, error) {
	prices, err := b.held(ctx, seller, from, to)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	r, err := invoice.NewRating(seller, prices, invoice.Whole(from, to))
	if err != nil {
		return api.InvoicePreview{}, fmt.Errorf("begin to rate the use of customer %s for reseller %s: %w", customer, seller, err)
	}
	if err := addAll(b.use(ctx, customer, from, to, api.MaxUse), r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	return rated(customer, r)
}

// merged yields the use of several organizations, each in the order of api.Use.Compare,
// in that order. It ends with the first error.
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

// source is an organization's use, starting with head.
type source struct {
	head api.Use
	next func() (api.Use, error, bool)
}

// queue is a heap of sources, ordered by their heads.
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
