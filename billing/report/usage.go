package report

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Uses returns usage from an hour on, in the order of api.Use.Compare.
type Uses func(from time.Time) iter.Seq2[api.Use, error]

// place is the sort key of a sum.
type place struct {
	From     time.Time
	Meter    api.Meter
	Project  string
	Resource string
}

func (p place) compare(q place) int {
	return cmp.Or(p.From.Compare(q.From), cmp.Compare(p.Meter, q.Meter), cmp.Compare(p.Project, q.Project), cmp.Compare(p.Resource, q.Resource))
}

// sum is the sum of usage at a place.
type sum struct {
	quantity api.Quantity
	named    api.Use // the usage that determines the resource's name
}

// Usage returns one page of sums. Errors are *api.Error, or those of uses.
func Usage(q api.UsageQuery, uses Uses) (page api.UsagePage, err error) {
	after, err := api.FromPageToken[place](q.Continue)
	if err != nil {
		return page, err
	}
	from := q.From
	if after.From.After(from) {
		from = after.From.UTC()
	}
	if _, _, err := span(q, from); err != nil {
		return page, err
	}
	var at time.Time // the beginning of the current span
	sums := map[place]sum{}
	flush := func() (full bool) {
		for _, p := range slices.SortedFunc(maps.Keys(sums), place.compare) {
			if after != (place{}) && p.compare(after) <= 0 {
				continue
			}
			if len(page.Items) == q.Limit {
				page.Continue = api.PageToken(last(page))
				return true
			}
			_, to, _ := span(q, p.From)
			page.Items = append(page.Items, api.UsageSum{From: p.From, To: to, Project: api.ProjectID(p.Project), Meter: p.Meter,
				Resource: p.Resource, ResourceName: sums[p].named.ResourceName, Quantity: sums[p].quantity})
		}
		clear(sums)
		return false
	}
	for u, err := range uses(from) {
		if err != nil {
			return api.UsagePage{}, err
		}
		if !q.Has(u) {
			continue
		}
		begin, _, _ := span(q, u.Hour)
		if !begin.Equal(at) && flush() {
			return page, nil
		}
		at = begin
		p := place{begin, u.Meter, u.Project, u.Resource}
		s := sums[p]
		s.quantity = s.quantity.Plus(api.Units(u.Quantity))
		if !s.named.NamedAt.After(u.NamedAt) {
			s.named = u
		}
		sums[p] = s
	}
	flush()
	return page, nil
}

// span returns the period that is summed together with an hour, limited to the query's.
func span(q api.UsageQuery, hour time.Time) (from, to time.Time, err error) {
	y, m, d := hour.UTC().Date()
	switch q.By {
	case api.ByHour:
		from = hour.UTC().Truncate(time.Hour)
		to = from.Add(time.Hour)
	case api.ByDay:
		from = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		to = from.AddDate(0, 0, 1)
	case api.ByMonth:
		from = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		to = from.AddDate(0, 1, 0)
	case api.ByTotal:
		from, to = q.From, q.To
	default:
		return from, to, api.Errorf(api.CodeInvalid, "cannot sum usage by %q", q.By).At("by").WithHint("use hour, day, month or total")
	}
	if from.Before(q.From) {
		from = q.From
	}
	if to.After(q.To) {
		to = q.To
	}
	return from.UTC(), to.UTC(), nil
}

func last(p api.UsagePage) place {
	l := p.Items[len(p.Items)-1]
	return place{l.From, l.Meter, string(l.Project), l.Resource}
}
