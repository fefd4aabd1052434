package invoice

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Costing rates usage as Rating does and divides the charges by day and by project,
// resource or meter. A charge is divided in proportion to the quantities, so that the
// parts add up to the invoice of the period.
type Costing struct {
	*Rating
	query api.CostQuery
	parts map[tariff.Key][]part
}

// part is a part of a charge: the quantity used in a step of the period.
type part struct {
	from     time.Time
	quantity api.Quantity
}

// NewCosting returns a costing of a period. Errors contain an *api.Error.
func NewCosting(q api.CostQuery, prices pricebook.Schedule) (*Costing, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	r, err := NewRating(q.Organization, prices, Whole(q.From, q.To))
	if err != nil {
		return nil, err
	}
	c := &Costing{Rating: r, query: q, parts: map[tariff.Key][]part{}}
	r.rater.Piece = c.piece
	return c, nil
}

// step returns the step of the period that contains an hour.
func (c *Costing) step(hour time.Time) (from, to time.Time) {
	if c.query.Step == api.CostTotal {
		return c.from, c.to
	}
	y, m, d := hour.UTC().Date()
	from = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	to = from.AddDate(0, 0, 1)
	if from.Before(c.from) {
		from = c.from
	}
	if to.After(c.to) {
		to = c.to
	}
	return from, to
}

// piece adds to the current part of its charge; hours arrive in order.
func (c *Costing) piece(p tariff.Piece) {
	from, _ := c.step(p.Hour)
	parts := c.parts[p.Key]
	if n := len(parts); n > 0 && parts[n-1].from.Equal(from) {
		parts[n-1].quantity = parts[n-1].quantity.Plus(p.Quantity)
		return
	}
	c.parts[p.Key] = append(parts, part{from, p.Quantity})
}

// costKey is the key of a sum.
type costKey struct {
	from time.Time
	key  string
}

// Costs returns the costs of all added usage: one page, ordered by step, and within a
// step the largest first.
func (c *Costing) Costs() (api.CostPage, error) {
	page := api.CostPage{Items: []api.Cost{}}
	if err := c.shares.flush(c.book, c.rater.Add); err != nil {
		return page, err
	}
	st, err := c.rater.Statement(c.from, c.to)
	if err != nil {
		return page, fmt.Errorf("rate the costs %s: %w", during(c.from, c.to), err)
	}
	page.Currency, page.TotalMicros = st.Currency, st.TotalMicros
	sums := map[costKey]*api.Cost{}
	for _, charge := range st.Charges {
		page.UsageMicros += charge.AmountMicros - charge.OffMicros
		c.divide(charge, sums)
	}
	for _, f := range st.Fees {
		page.CommitmentMicros += f.FeeMicros
	}
	page.MinimumMicros = st.TopUpMicros
	for _, l := range st.Taxes {
		page.TaxMicros += l.AmountMicros
	}
	err = c.page(&page, c.largest(sums))
	return page, err
}

// largest keeps the sums of the costliest keys of the period, and adds up all others in
// each step.
func (c *Costing) largest(sums map[costKey]*api.Cost) map[costKey]*api.Cost {
	totals := map[string]int64{}
	for k, s := range sums {
		totals[k.key] += s.AmountMicros
	}
	if c.query.Top == 0 || len(totals) <= c.query.Top {
		return sums
	}
	keys := slices.SortedFunc(maps.Keys(totals), func(a, b string) int { return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b)) })
	out := map[costKey]*api.Cost{}
	for k, s := range sums {
		if !slices.Contains(keys[:c.query.Top], k.key) {
			k.key = ""
			if out[k] == nil {
				out[k] = &api.Cost{From: s.From, To: s.To}
			}
			out[k].AmountMicros += s.AmountMicros
			continue
		}
		out[k] = s
	}
	return out
}

// divide divides a charge among the steps in which it was used. It rounds the
// cumulative amount at each step instead of each part, so that nothing is lost or
// added.
func (c *Costing) divide(charge tariff.Charge, sums map[costKey]*api.Cost) {
	amount, all := big.NewInt(charge.AmountMicros-charge.OffMicros), charge.Quantity.Int()
	soFar, given := api.Quantity{}, int64(0)
	key, name := c.keyOf(charge)
	for _, p := range c.parts[charge.Key] {
		soFar = soFar.Plus(p.quantity)
		upTo := new(big.Int).Mul(amount, soFar.Int())
		micros := upTo.Quo(upTo, all).Int64() - given
		given += micros
		k := costKey{p.from, key}
		if sums[k] == nil {
			from, to := c.step(p.from)
			sums[k] = &api.Cost{From: from, To: to, Key: key, Name: name}
		}
		sums[k].AmountMicros += micros
	}
}

// keyOf returns the key by which the query groups a charge, and its name if the usage
// has one.
func (c *Costing) keyOf(charge tariff.Charge) (key, name string) {
	switch c.query.By {
	case api.CostByProject:
		return charge.Project, ""
	case api.CostByMeter:
		return string(charge.Meter), ""
	}
	if n := c.names[charge.Resource]; n != nil {
		name = n.name
	}
	return charge.Resource, name
}

// page adds the sums that follow the previous page.
func (c *Costing) page(page *api.CostPage, sums map[costKey]*api.Cost) error {
	after, err := api.FromPageToken[api.Cost](c.query.Continue)
	if err != nil {
		return err
	}
	for _, s := range sums {
		if c.query.Continue == "" || compareCosts(*s, after) > 0 {
			page.Items = append(page.Items, *s)
		}
	}
	slices.SortFunc(page.Items, compareCosts)
	if len(page.Items) > c.query.Limit {
		page.Items = page.Items[:c.query.Limit]
		page.Continue = costToken(page.Items[len(page.Items)-1])
	}
	return nil
}

func compareCosts(a, b api.Cost) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(b.AmountMicros, a.AmountMicros), cmp.Compare(a.Key, b.Key))
}

// costToken returns the page token for the last item of a page.
func costToken(last api.Cost) string {
	return api.PageToken(api.Cost{From: last.From, AmountMicros: last.AmountMicros, Key: last.Key})
}
