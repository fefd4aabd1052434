package invoice

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// seller is an organization's usage, prices and invoices in a test.
type seller struct {
	t        *testing.T
	prices   pricebook.Schedule
	known    []api.Use
	invoices []api.Invoice
}

// learn adds usage.
func (s *seller) learn(u api.Use) {
	if i, found := slices.BinarySearchFunc(s.known, u, api.Use.Compare); found {
		s.known[i] = s.known[i].Plus(u)
	} else {
		s.known = slices.Insert(s.known, i, u)
	}
}

// rate rates a period by prices.
func (s *seller) rate(prices pricebook.Schedule, p Period) api.InvoicePreview {
	s.t.Helper()
	r, err := NewRating("org-1", prices, p)
	if err != nil {
		s.t.Fatal(err)
	}
	r.SetTaxation(Taxation{Taxes: []tariff.Tax{vat}})
	q := api.UseQuery{From: p.Start, To: p.To}
	for _, u := range s.known {
		if q.Has(u) {
			if err := r.Add(u); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	out, err := r.Invoice()
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// issue issues the invoice of a period, with late usage of earlier ones.
func (s *seller) issue(p Period) {
	s.t.Helper()
	prices := s.prices.Within(p.Start, p.To)
	d := Draft{Organization: api.Organization{Meta: api.Meta{ID: "org-1"}, Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{}}},
		Period: p, Prices: prices, Preview: s.rate(prices, p), At: p.To}
	for _, inv := range s.invoices {
		var charged []api.InvoiceLine
		for _, later := range s.invoices {
			for _, l := range later.Spec.Lines {
				if string(l.Invoice) == inv.Meta.ID {
					charged = append(charged, l)
				}
			}
		}
		d.Late = append(d.Late, LateLines(inv, charged, s.rate(pricebook.Of(inv.Spec), PeriodOf(inv.Spec)))...)
	}
	if len(d.Preview.Lines)+len(d.Late) == 0 {
		return
	}
	cmds, spec, err := Issue(d, api.SeriesSpec{Invoices: int64(len(s.invoices))}, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	s.invoices = append(s.invoices, api.Invoice{Meta: api.Meta{ID: cmds[1].ID}, Spec: spec})
}

// randomPrices returns prices with tiers, discounts, commitments that begin and end within
// the month, and a minimum.
func randomPrices(random *rand.Rand) api.PriceBookSpec {
	book := pricebook.Default()
	book.Prices[0].Tiers = []api.PriceTier{{UpTo: 1 + random.Int64N(5), PriceMicros: 70_001}, {UpTo: 30, PriceMicros: 12_345}}
	book.Discounts = []api.Discount{{BasisPoints: 3333, From: october.Add(time.Duration(random.IntN(700)) * time.Hour)}}
	for range random.IntN(3) {
		begin := october.Add(time.Duration(random.IntN(900)-200) * time.Hour)
		book.Commitments = append(book.Commitments, api.Commitment{Meter: []api.Meter{api.MeterGPU, api.MeterVCPU}[random.IntN(2)], Quantity: 1 + random.Int64N(9),
			Per: 3600, PriceMicros: random.Int64N(9999), From: begin, Until: begin.Add(time.Duration(1+random.IntN(900)) * time.Hour)})
	}
	book.MinimumMicros = random.Int64N(4_000_000)
	return book
}

// TestInvoicesOfAMonthAddUp issues final invoices at random times of a month in which usage
// arrives in any order and prices change. Together with the invoice of the rest, and
// late lines, they must charge exactly what the month costs.
func TestInvoicesOfAMonthAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 3))
	parts := 0
	for range 60 {
		s := &seller{t: t, prices: pricebook.Schedule{{Prices: randomPrices(random)},
			{From: october.Add(time.Duration(1+random.IntN(740)) * time.Hour), Prices: randomPrices(random)}}}
		use := func(until time.Time) {
			for range random.IntN(12) {
				hours := random.IntN(max(1, int(until.Sub(october)/time.Hour)))
				s.learn(useAt(october.Add(time.Duration(hours)*time.Hour), []string{"ins-1", "ins-2"}[random.IntN(2)],
					[]api.Meter{api.MeterVCPU, api.MeterGPU, api.MeterLaunch}[random.IntN(3)], random.Int64N(40_000)))
			}
		}
		for now := october.Add(time.Duration(random.Int64N(int64(400 * time.Hour)))); now.Before(december); now = now.Add(time.Duration(random.Int64N(int64(500 * time.Hour)))) {
			use(now)
			for _, p := range Final(october, s.invoices, time.UTC, now) {
				s.issue(p)
			}
		}
		use(december)
		for range 2 { // the second time for usage of what the first one charged
			open, _ := Open(october, s.invoices, time.UTC, december.AddDate(0, 1, 0))
			for _, p := range open {
				s.issue(p)
			}
		}
		for month := october; month.Before(december); month = month.AddDate(0, 1, 0) {
			whole := Whole(month, month.AddDate(0, 1, 0))
			want, got, at, ids := s.rate(s.prices, whole).TotalMicros, int64(0), month, map[string]bool{}
			for _, inv := range s.invoices {
				if p := PeriodOf(inv.Spec); p.Start.Equal(month) {
					if !p.From.Equal(at) || !p.To.After(at) {
						t.Fatalf("an invoice is from %s to %s, want it to begin at %s, where the one before ends", p.From, p.To, at)
					}
					at = p.To
					ids[inv.Meta.ID] = true
					parts++
				}
			}
			for _, inv := range s.invoices {
				for _, l := range inv.Spec.Lines {
					if l.Kind == api.LineLate && ids[string(l.Invoice)] || l.Kind != api.LineLate && ids[inv.Meta.ID] {
						got += l.AmountMicros
					}
				}
			}
			if got != want {
				t.Fatalf("the invoices of the month from %s on charge %d, want %d, which the month costs", month, got, want)
			}
		}
	}
	if parts < 250 {
		t.Errorf("invoices of the months = %d, want several for each month", parts)
	}
}

// TestFinal checks which periods the final invoices of an organization cover.
func TestFinal(t *testing.T) {
	at := func(days, hours, minutes int) time.Time {
		return october.AddDate(0, 0, days).Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	issued := func(periods ...Period) (all []api.Invoice) {
		for _, p := range periods {
			all = append(all, api.Invoice{Spec: api.InvoiceSpec{From: p.From, To: p.To, Month: p.month()}})
		}
		return all
	}
	part := func(from, to time.Time) Period { return Period{From: from, To: to, Start: october, End: november} }
	for name, c := range map[string]struct {
		invoices []api.Invoice
		now      time.Time
		want     []Period
	}{
		"within a month":              {nil, at(19, 14, 27), []Period{part(october, at(19, 15, 0))}},
		"at a full hour":              {nil, at(19, 14, 0), []Period{part(october, at(19, 14, 0))}},
		"again in the same hour":      {issued(part(october, at(19, 15, 0))), at(19, 14, 40), nil},
		"again later":                 {issued(part(october, at(19, 15, 0))), at(25, 1, 0), []Period{part(at(19, 15, 0), at(25, 1, 0))}},
		"in the last hour of a month": {nil, at(30, 23, 10), []Period{Whole(october, november)}},
		"before the month's invoice": {nil, at(31, 1, 10), []Period{Whole(october, november),
			{From: november, To: at(31, 2, 0), Start: november, End: december}}},
		"before the invoice of a rest": {issued(part(october, at(19, 15, 0))), at(31, 1, 0), []Period{part(at(19, 15, 0), november),
			{From: november, To: at(31, 1, 0), Start: november, End: december}}},
	} {
		got := Final(october, c.invoices, time.UTC, c.now)
		if !slices.EqualFunc(got, c.want, func(a, b Period) bool {
			return a.From.Equal(b.From) && a.To.Equal(b.To) && a.Start.Equal(b.Start) && a.End.Equal(b.End)
		}) {
			t.Errorf("%s: final invoices cover %v, want %v", name, got, c.want)
		}
	}
	if _, present := Open(october, issued(part(october, at(19, 15, 0))), time.UTC, at(19, 16, 0)); !present.To.Equal(november) || !present.Start.Equal(october) {
		t.Errorf("period after a final invoice = %v, want the rest of October", present)
	}
}
