package invoicing

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// running caches ratings of open periods up to an hour that has passed, so that a step
// rates only the hours since then. Each is dropped when use of an hour that it has
// rated changes, and is valid for certain prices only: its result equals that of rating
// the whole period again.
type running struct {
	cached map[string][]cachedRating // by organization, at most maxCached each
	size   int                       // number of charges in all ratings
}

type cachedRating struct {
	prices string // key of the prices that it rates by
	from   time.Time
	upTo   time.Time // the hours before it are rated
	rating *invoice.Rating
}

const (
	maxCached  = 3       // periods per organization: its wallet's, one without an invoice yet, its budgets'
	maxCharges = 500_000 // in all, about 300 bytes each; beyond it, periods are rated again
	// hotPeriod is how long after its end an hour's use is still expected to change.
	hotPeriod = 30 * time.Minute
)

// touched drops ratings that are outdated.
func (r *running) touched(t api.Touched) {
	if t.All {
		*r = running{}
		return
	}
	for id, touch := range t.Organizations {
		if touch.Has(api.KindUsageRecord) && slices.ContainsFunc(r.cached[id], func(k cachedRating) bool { return touch.Hour.Before(k.upTo) }) {
			r.drop(id)
		}
	}
}

func (r *running) drop(org string) {
	for _, k := range r.cached[org] {
		r.size -= k.rating.Size()
	}
	delete(r.cached, org)
}

// lookup returns a rating of a period that ends at now, to fork and continue from the
// returned hour on, or nil.
func (r *running) lookup(org, prices string, from, now time.Time) (*invoice.Rating, time.Time) {
	for _, k := range r.cached[org] {
		if k.prices == prices && k.from.Equal(from) && k.upTo.Before(now) {
			return k.rating, k.upTo
		}
	}
	return nil, from
}

// save stores a rating, which must not be added to any more.
func (r *running) save(org, prices string, from, upTo time.Time, rating *invoice.Rating) {
	all := slices.Clone(r.cached[org])
	r.drop(org)
	all = slices.DeleteFunc(all, func(k cachedRating) bool { return k.from.Equal(from) })
	all = append(all, cachedRating{prices, from, upTo, rating})
	if r.cached == nil {
		r.cached = map[string][]cachedRating{}
	}
	for _, k := range all[max(0, len(all)-maxCached):] {
		if r.size+k.rating.Size() <= maxCharges {
			r.size += k.rating.Size()
			r.cached[org] = append(r.cached[org], k)
		}
	}
}

// rateSoFar rates what an organization has used up to now in a period that may not have
// ended.
func (j *Job) rateSoFar(ctx context.Context, org string, p invoice.Period, now time.Time) (api.InvoicePreview, error) {
	id := api.OrganizationID(org)
	prices, err := j.Billing.held(ctx, id, p.Start, p.To)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	key := keyOf(prices, p)
	j.mu.Lock()
	r, begin := j.running.lookup(org, key, p.Start, now)
	j.mu.Unlock()
	if r != nil {
		r = r.Fork(now)
	} else {
		if r, err = invoice.NewRatingSoFar(id, prices, p, now); err != nil {
			return api.InvoicePreview{}, fmt.Errorf("begin to rate the use of organization %s: %w", id, err)
		}
		begin = p.Start
	}
	if past := now.Add(-hotPeriod).UTC().Truncate(time.Hour); past.After(begin) {
		if err := j.Billing.add(ctx, id, begin, past, r.Add); err != nil {
			return api.InvoicePreview{}, err
		}
		j.mu.Lock()
		j.running.save(org, key, p.Start, past, r)
		j.mu.Unlock()
		r, begin = r.Fork(now), past
	}
	if err := j.Billing.add(ctx, id, begin, now, r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	taxes, err := j.Billing.taxation(ctx, id, p.From, p.To)
	if err != nil {
		return api.InvoicePreview{}, err
	}
	r.SetTaxation(taxes)
	return rated(id, r)
}

// keyOf returns a key for the prices of a period.
func keyOf(prices pricebook.Schedule, p invoice.Period) string {
	sum := sha256.Sum256(append(api.Encode(prices), api.Encode([]time.Time{p.From.UTC(), p.To.UTC(), p.Start.UTC(), p.End.UTC()})...))
	return string(sum[:])
}
