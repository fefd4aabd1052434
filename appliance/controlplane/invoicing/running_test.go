package invoicing

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// counting is a store that counts reads.
type counting struct {
	*memstore.Store
	gets, uses int
	hours      time.Duration // of requested use
}

func (c *counting) Get(ctx context.Context, k api.Kind, id string) (api.Object, error) {
	c.gets++
	return c.Store.Get(ctx, k, id)
}

func (c *counting) Use(ctx context.Context, q api.UseQuery) (api.UsePage, error) {
	c.uses++
	c.hours += q.To.Sub(q.From)
	return c.Store.Use(ctx, q)
}

func (w *fixture) budget() api.BudgetStatus {
	w.t.Helper()
	o, err := w.Get(w.t.Context(), api.KindBudget, "bud-1")
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := api.Decode[api.Budget](o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b.Status
}

// One job runs through a month in which records arrive late, twice, and ahead of time,
// and prices and terms change: after every step it has written what a new job would
// write.
func TestRunningJobsShareTime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(1_000_000), SuspendAfterDays: api.Setting(1)})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindBudget, ID: "bud-1", Name: "all", Organization: "org-1",
		Data: api.Encode(api.BudgetSpec{AmountMicros: 3_000_000, AlertPercents: []int64{50, 80}, Cap: api.CapStop})})
	w.pay("pay-0", 4_000_000)
	c := &counting{Store: w.Store}
	j := &Job{Billing: Billing{c}, Store: w.Store, Changes: w.Store, Log: w.job().Log}
	states := map[api.BillingState]int{}
	for at, n := march, 0; at.Before(march.AddDate(0, 1, 3)); n++ {
		at = at.Add(time.Duration(random.IntN(40)) * time.Minute)
		switch random.IntN(20) {
		case 0, 1, 2, 3, 4, 5, 6, 7:
			w.used(at.Add(-time.Duration(random.IntN(60))*time.Minute), api.MeterVCPU, random.Int64N(9000))
		case 8:
			w.used(at.Add(-time.Duration(random.IntN(30))*time.Hour), api.MeterVCPU, random.Int64N(20_000))
		case 9:
			w.used(at.Add(-time.Duration(random.IntN(600))*time.Second), api.MeterMemory, random.Int64N(1<<40))
		case 10:
			if random.IntN(50) == 0 {
				w.pay(at.String(), 2_000_000)
			}
		case 11:
			if random.IntN(30) == 0 {
				o, err := w.Get(t.Context(), api.KindPriceBook, "pb-1")
				if err != nil {
					t.Fatal(err)
				}
				book, err := api.Decode[api.PriceBook](o)
				if err != nil {
					t.Fatal(err)
				}
				book.Spec.Prices[0].PriceMicros++
				w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-1", Expect: api.AnyRevision, Data: api.Encode(book.Spec)})
			}
		}
		j.Step(t.Context(), at)
		states[statusOf(w.organization()).State]++
		if n%5 != 0 {
			continue
		}
		before, was, budget := w.Revision(), w.organization(), w.budget()
		w.job().Step(t.Context(), at)
		if w.Revision() != before {
			t.Fatalf("%s: a new job writes more:\n%+v, %+v\n%+v, %+v", at, was.Status.Billing, budget, w.organization().Status.Billing, w.budget())
		}
	}
	for _, s := range []api.BillingState{api.BillingOK, api.BillingWarn, api.BillingStop, api.BillingSuspended} {
		if states[s] == 0 {
			t.Errorf("states = %v, want %s among them", states, s)
		}
	}
	if average := c.hours / time.Duration(c.uses); average > 60*time.Hour {
		t.Errorf("%d reads of use of %s on average, want at most 60h: ratings are not cached", c.uses, average)
	}
	if got, max := len(j.running.cached["org-1"]), maxCached; got == 0 || got > max {
		t.Errorf("cached ratings = %d, want 1 to %d", got, max)
	}
}

// An organization that was not touched is not read, except once in about an hour.
func TestNothingIsReadForNothing(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingPrepaid})
	w.pay("pay-1", 1_000_000)
	c := &counting{Store: w.Store}
	j := &Job{Billing: Billing{c}, Store: w.Store, Changes: w.Store, Log: w.job().Log}
	at := march.Add(5 * time.Hour)
	for range 3 { // its own writes make the organization due
		j.Step(t.Context(), at)
	}
	before, checks := c.gets, 0
	for range 120 {
		at = at.Add(time.Minute)
		j.Step(t.Context(), at)
		if c.gets != before {
			checks++
		}
		before = c.gets
	}
	if checks < 2 || checks > 4 {
		t.Errorf("checks within two hours = %d, want 2 to 4", checks)
	}
	w.used(at, api.MeterVCPU, 3600)
	j.Step(t.Context(), at)
	if c.gets == before {
		t.Error("the organization was not read after use, want it read")
	}
	w.put(api.Command{Op: api.OpDelete, Kind: api.KindOrganization, ID: "org-1", Expect: api.AnyRevision, Cascade: true})
	j.Step(t.Context(), at)
	before = c.gets
	j.Step(t.Context(), at.Add(5*time.Hour))
	if c.gets != before || len(j.agenda)+len(j.running.cached)+j.running.size != 0 {
		t.Errorf("after the organization was removed: agenda %+v, ratings %+v, %d reads more; want none", j.agenda, j.running, c.gets-before)
	}
}
