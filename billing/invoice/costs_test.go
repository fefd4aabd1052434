package invoice

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// costs returns the costs of a period, reading all pages of the query's limit.
func costs(t *testing.T, q api.CostQuery, spec api.PriceBookSpec, all []api.Use, taxes ...tariff.Tax) api.CostPage {
	t.Helper()
	var out api.CostPage
	for {
		c, err := NewCosting(q, pricebook.Always(spec))
		if err != nil {
			t.Fatal(err)
		}
		c.SetTaxation(Taxation{Taxes: taxes})
		for _, u := range all {
			if err := c.Add(u); err != nil {
				t.Fatal(err)
			}
		}
		page, err := c.Costs()
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > q.Limit {
			t.Fatalf("got a page of %d rows, want at most %d", len(page.Items), q.Limit)
		}
		items := append(out.Items, page.Items...)
		out, q.Continue = page, page.Continue
		out.Items = items
		if q.Continue == "" {
			return out
		}
	}
}

// randomUse returns usage of a few projects, resources and meters in the first days of
// October.
func randomUse(random *rand.Rand) (all []api.Use) {
	for range 1 + random.IntN(80) {
		project := random.IntN(3)
		u := api.Use{Hour: october.Add(time.Duration(random.IntN(90)) * time.Hour), Meter: []api.Meter{api.MeterVCPU, api.MeterGPU}[random.IntN(2)],
			Project: fmt.Sprint("prj-", project), Resource: fmt.Sprint("ins-", project, random.IntN(3)), Quantity: random.Int64N(9000), NamedAt: october, ResourceName: "web"}
		if i, found := slices.BinarySearchFunc(all, u, api.Use.Compare); !found {
			all = slices.Insert(all, i, u)
		}
	}
	return all
}

// TestCostsAreTheInvoice checks that the divided costs add up to the invoice of the
// period: for each project, resource and meter to the micro, and by day without a
// remainder, with tiers, commitments, discounts, a minimum and taxes.
func TestCostsAreTheInvoice(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 7))
	spec := api.PriceBookSpec{Currency: "EUR", MinimumMicros: 1000,
		Prices: []api.Price{
			{Meter: api.MeterVCPU, Per: 3600, PriceMicros: 501, Tiers: []api.PriceTier{{UpTo: 20, PriceMicros: 907}}},
			{Meter: api.MeterVCPU, Per: 3600, PriceMicros: 700, From: october.Add(40 * time.Hour)},
			{Meter: api.MeterGPU, Per: 1000, PriceMicros: 3}},
		Commitments: []api.Commitment{{Meter: api.MeterVCPU, Quantity: 7, Per: 3600, PriceMicros: 300}},
		Discounts:   []api.Discount{{Meters: []api.Meter{api.MeterGPU}, BasisPoints: 1234}}}
	from, to := october.Add(5*time.Hour), october.Add(90*time.Hour)
	for range 100 {
		all := slices.DeleteFunc(randomUse(random), func(u api.Use) bool { return u.Hour.Before(from) })
		inv := invoice(t, spec, from, to, all, vat)
		for _, by := range []api.CostBy{api.CostByProject, api.CostByResource, api.CostByMeter} {
			want, usage := map[string]int64{}, int64(0)
			for _, l := range inv.Lines {
				if l.Kind == api.LineUsage {
					key := map[api.CostBy]string{api.CostByProject: string(l.Project), api.CostByResource: l.Resource, api.CostByMeter: string(l.Meter)}[by]
					want[key] += l.AmountMicros
					usage += l.AmountMicros
				}
			}
			for _, step := range []api.CostStep{api.CostTotal, api.CostDay} {
				q := api.CostQuery{Organization: "org-1", From: from, To: to, By: by, Step: step, Limit: 1 + random.IntN(9)}
				c := costs(t, q, spec, all, vat)
				got := map[string]int64{}
				for _, row := range c.Items {
					got[row.Key] += row.AmountMicros
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("costs by %s and %s differ from the invoice (-want +got):\n%s", by, step, d)
				}
				q.Top = 1 + random.IntN(3)
				top := map[string]int64{}
				for _, row := range costs(t, q, spec, all, vat).Items {
					top[row.Key] += row.AmountMicros
				}
				others := top[""]
				delete(top, "")
				for key, micros := range top {
					if micros != want[key] {
						t.Fatalf("top %d by %s and %s: got %d micros for %s, want %d", q.Top, by, step, micros, key, want[key])
					}
					others += micros
				}
				if len(top) > q.Top || others != usage {
					t.Fatalf("top %d by %s and %s: got %d keys that come with all others to %d micros, want %d", q.Top, by, step, len(top), others, usage)
				}
				if c.UsageMicros != usage || c.TotalMicros != inv.TotalMicros || c.UsageMicros+c.CommitmentMicros+c.MinimumMicros+c.TaxMicros != c.TotalMicros {
					t.Fatalf("by %s and %s: got %+v, want usage of %d and a total of %d", by, step, c, usage, inv.TotalMicros)
				}
			}
		}
	}
}

// TestCostsByDay checks that a day costs what was used on it, that days are limited to
// the period, and that rows of a day are in descending order.
func TestCostsByDay(t *testing.T) {
	at := func(hours int, resource string, quantity int64) api.Use {
		u := useAt(october.Add(time.Duration(hours)*time.Hour), resource, api.MeterVCPU, quantity)
		return u
	}
	q := api.CostQuery{Organization: "org-1", From: october.Add(12 * time.Hour), To: october.Add(60 * time.Hour), By: api.CostByResource, Step: api.CostDay, Limit: 10}
	got := costs(t, q, pricebook.Default(), []api.Use{at(12, "ins-1", hour), at(23, "ins-1", 2*hour), at(24, "ins-1", hour), at(24, "ins-2", 5*hour), at(59, "ins-2", hour)})
	day := func(from, to int, key string, cents int64) api.Cost {
		return api.Cost{From: october.Add(time.Duration(from) * time.Hour), To: october.Add(time.Duration(to) * time.Hour), Key: key, Name: "name of " + key, AmountMicros: cents * cent}
	}
	want := []api.Cost{day(12, 24, "ins-1", 3), day(24, 48, "ins-2", 5), day(24, 48, "ins-1", 1), day(48, 60, "ins-2", 1)}
	if d := cmp.Diff(want, got.Items); d != "" {
		t.Errorf("costs by day: mismatch (-want +got):\n%s", d)
	}
}

// TestCostsRefuse checks that errors of invalid queries name the field.
func TestCostsRefuse(t *testing.T) {
	good := api.CostQuery{From: october, To: november, By: api.CostByMeter, Step: api.CostDay, Limit: 1}
	for field, q := range map[string]func(*api.CostQuery){
		"to":    func(q *api.CostQuery) { q.To = q.From.AddDate(2, 0, 0) },
		"by":    func(q *api.CostQuery) { q.By = "moon" },
		"top":   func(q *api.CostQuery) { q.Top = 101 },
		"step":  func(q *api.CostQuery) { q.Step = "year" },
		"limit": func(q *api.CostQuery) { q.Limit = 1001 },
	} {
		bad := good
		q(&bad)
		if _, err := NewCosting(bad, pricebook.Always(pricebook.Default())); api.CodeOf(err) != api.CodeInvalid || fieldsOf(err)[field] == "" {
			t.Errorf("%s: got %v, want an invalid %s", field, err, field)
		}
	}
	good.Continue = "!"
	c, err := NewCosting(good, pricebook.Always(pricebook.Default()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Costs(); fieldsOf(err)["continue"] == "" {
		t.Errorf("invalid page token: got %v, want an error at continue", err)
	}
}

// fieldsOf returns the fields of an error, with their messages.
func fieldsOf(err error) map[string]string {
	out := map[string]string{}
	e := (*api.Error)(nil)
	if !errors.As(err, &e) {
		return out
	}
	for _, one := range append([]*api.Error{e}, e.Others...) {
		out[one.Field] = one.Message
	}
	return out
}

// FuzzCostContinue checks that any page token results in a page or an error.
func FuzzCostContinue(f *testing.F) {
	f.Add("")
	f.Add(costToken(api.Cost{From: october, Key: "ins-1", AmountMicros: 3}))
	f.Fuzz(func(t *testing.T, token string) {
		c, err := NewCosting(api.CostQuery{From: october, To: november, By: api.CostByMeter, Step: api.CostDay, Limit: 1, Continue: token}, pricebook.Always(pricebook.Default()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Costs(); err != nil && api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("got %v, want a page or an invalid continue", err)
		}
	})
}
