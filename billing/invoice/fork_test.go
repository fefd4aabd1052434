package invoice

import (
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

// TestForkEqualsNewRating checks that a continued fork gives the same invoice as a new rating,
// with tiers, commitments that end within the period, discounts and names; and that the
// original does not change.
func TestForkEqualsNewRating(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	spec := api.PriceBookSpec{Currency: "EUR", MinimumMicros: 1000,
		Prices: []api.Price{
			{Meter: api.MeterVCPU, Per: 3600, PriceMicros: 500, Tiers: []api.PriceTier{{UpTo: 20, PriceMicros: 900}}},
			{Meter: api.MeterVCPU, Per: 3600, PriceMicros: 700, From: october.Add(40 * time.Hour)},
			{Meter: api.MeterGPU, Per: 1000, PriceMicros: 3}},
		Commitments: []api.Commitment{{Meter: api.MeterVCPU, Quantity: 7, Per: 3600, PriceMicros: 300, Until: october.Add(60 * time.Hour)}}}
	for range 200 {
		var all []api.Use
		for range 1 + random.IntN(60) {
			u := api.Use{Hour: october.Add(time.Duration(random.IntN(90)) * time.Hour), Meter: []api.Meter{api.MeterVCPU, api.MeterGPU}[random.IntN(2)],
				Project: "prj-1", Resource: fmt.Sprint("ins-", random.IntN(3)), Quantity: random.Int64N(9000), NamedAt: october.Add(time.Duration(random.IntN(90)) * time.Hour)}
			u.ResourceName = fmt.Sprint("name-", u.NamedAt.Hour())
			if i, found := slices.BinarySearchFunc(all, u, api.Use.Compare); !found {
				all = slices.Insert(all, i, u)
			}
		}
		upTo, was, to := october.Add(time.Duration(random.IntN(50))*time.Hour), october.Add(50*time.Hour), october.Add(time.Duration(50+random.IntN(40))*time.Hour)
		kept, err := NewRatingSoFar("org-1", pricebook.Always(spec), Whole(october, november), was)
		if err != nil {
			t.Fatal(err)
		}
		taxed := Taxation{Taxes: []tariff.Tax{vat}}
		kept.SetTaxation(taxed)
		add := func(r *Rating, from, to time.Time) {
			t.Helper()
			for _, u := range all {
				if !u.Hour.Before(from) && u.Hour.Before(to) {
					if err := r.Add(u); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		add(kept, october, upTo)
		before, err := kept.Invoice()
		if err != nil {
			t.Fatal(err)
		}
		f := kept.Fork(to)
		add(f, upTo, to)
		got, err := f.Invoice()
		if err != nil {
			t.Fatal(err)
		}
		anew, err := NewRatingSoFar("org-1", pricebook.Always(spec), Whole(october, november), to)
		if err != nil {
			t.Fatal(err)
		}
		anew.SetTaxation(taxed)
		add(anew, october, to)
		want, err := anew.Invoice()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("invoice of the fork: mismatch (-want +got):\n%s", d)
		}
		if after, err := kept.Invoice(); err != nil || cmp.Diff(before, after) != "" {
			t.Fatalf("invoice of the original after the fork: error %v, mismatch (-want +got):\n%s", err, cmp.Diff(before, after))
		}
	}
}
