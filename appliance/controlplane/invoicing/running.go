package invoicing

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// running keeps ratings of open periods up to an hour that has passed, so that
// a look rates only the hours since. Each is dropped when use of an hour that it
// has rated changes, and belongs to certain prices: what it
// comes to is what rating the whole period anew comes to.
type running struct {
	kept map[string][]kept // by organization, at most maxKept
	size int               // charges of all
}

type kept struct {
	prices string // by which it rates
	from   time.Time
	upTo   time.Time // the hours before it are rated
	rating *invoice.Rating
}

const (
	maxKept    = 3       // periods of an organization: its wallet's, one without an invoice yet, its budgets'
	maxCharges = 500_000 // of all, some 300 bytes each; what is beyond is rated anew
	// hot is how long after its end an hour's use is expected to change.
	hot = 30 * time.Minute
)

// touched drops what is not true any more.
func (r *running) touched(t api.Touched) {
	if t.All {
		*r = running{}
		return
	}
	for id, touch := range t.Organizations {
		if touch.Has(api.KindUsageRecord) && slices.ContainsFunc(r.kept[id], func(k kept) bool { return touch.Hour.Before(k.upTo) }) {
			r.drop(id)
		}
	}
}

func (r *running) drop(org string) {
	for _, k := range r.kept[org] {
		r.size -= k.rating.Size()
	}
	delete(r.kept, org)
}

// of a period that ends at now: a rating to fork and go on with from an hour on, or nil.
func (r *running) of(org, prices string, from, now time.Time) (*invoice.Rating, time.Time) {
	for _, k := range r.kept[org] {
		if k.prices == prices && k.from.Equal(from) && k.upTo.Before(now) {
			return k.rating, k.upTo
		}
	}
	return nil, from
}

// keep a rating, which nobody adds to any more.
func (r *running) keep(org, prices string, from, upTo time.Time, rating *invoice.Rating) {
	all := slices.Clone(r.kept[org])
	r.drop(org)
	all = slices.DeleteFunc(all, func(k kept) bool { return k.from.Equal(from) })
	all = append(all, kept{prices, from, upTo, rating})
	if r.kept == nil {
		r.kept = map[string][]kept{}
	}
	for _, k := range all[max(0, len(all)-maxKept):] {
		if r.size+k.rating.Size() <= maxCharges {
			r.size += k.rating.Size()
			r.kept[org] = append(r.kept[org], k)
		}
	}
}

// rateSoFar rates what an organization has used up to now of a period that goes on.
func (j *Job) rateSoFar(ctx context.Context, org string, from, now, to time.Time) (api.InvoicePreview, error) {
	id := api.OrganizationID(org)
	prices, err := j.Books.held(ctx, id, from, to) // nothing of it was invoiced
	if err != nil {
		return api.InvoicePreview{}, err
	}
	key := keyOf(prices, to)
	j.mu.Lock()
	r, begin := j.running.of(org, key, from, now)
	j.mu.Unlock()
	if r != nil {
		r = r.Fork(now)
	} else {
		if r, err = invoice.NewRatingSoFar(id, prices, from, now, to); err != nil {
			return api.InvoicePreview{}, err
		}
		begin = from
	}
	if past := now.Add(-hot).UTC().Truncate(time.Hour); past.After(begin) {
		if err := j.Books.add(ctx, id, begin, past, r.Add); err != nil {
			return api.InvoicePreview{}, err
		}
		j.mu.Lock()
		j.running.keep(org, key, from, past, r)
		j.mu.Unlock()
		r, begin = r.Fork(now), past
	}
	if err := j.Books.add(ctx, id, begin, now, r.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	return r.Invoice()
}

// keyOf prices of a period that ends then.
func keyOf(prices pricebook.Schedule, to time.Time) string {
	sum := sha256.Sum256(append(api.Encode(prices), to.UTC().Format(time.RFC3339Nano)...))
	return string(sum[:])
}
