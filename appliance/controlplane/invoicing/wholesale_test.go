package invoicing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// reseller makes org-1 pay for its customers shop-a and shop-b in periods.
func (w *fixture) reseller(periods ...api.Wholesale) {
	w.t.Helper()
	terms := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingInvoice, Since: march, Wholesale: periods}, march)
	cheap := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: 1000, Per: 3600}}}
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-2", Name: "wholesale", Data: api.Encode(cheap)},
		api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Expect: api.AnyRevision, Data: api.Encode(api.OrganizationSpec{Billing: terms, PriceBook: "pb-2"})})
	for _, name := range []string{"shop-a", "shop-b"} {
		w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-" + name, Name: name, Organization: "org-1",
			Data: api.Encode(api.OrganizationSpec{Parent: "org-1", Billing: api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingInvoice, Since: march}, march)})})
	}
}

// customerUsed records that a customer used n vCPU-seconds in the hour before end.
func (w *fixture) customerUsed(org string, end time.Time, n int64) {
	w.t.Helper()
	w.seen++
	w.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%012x", w.seen), Organization: org, Project: "prj-" + org,
		Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: fmt.Sprintf("ins-%s-%d", org, n/3600%2), Start: end.Add(-time.Hour), End: end, Quantity: n})})
}

// lineOf is the part of an invoice line that is compared.
type lineOf struct {
	Resource, Name string
	Micros         int64
}

func linesOf(lines []api.InvoiceLine) (out []lineOf) {
	for _, l := range lines {
		out = append(out, lineOf{l.Resource, l.ResourceName, l.AmountMicros})
	}
	return out
}

// A reseller pays by its own price book for what its customers use while it has
// wholesale terms, with one line for each customer; the customers pay by theirs.
func TestWholesale(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	april := march.AddDate(0, 1, 0)
	w.reseller(api.Wholesale{From: march.AddDate(0, 0, 1), Until: march.AddDate(0, 0, 2)}, api.Wholesale{From: march.AddDate(0, 0, 10)})
	for _, day := range []int{0, 1, 5, 12} { // the first and the third are outside of the periods
		end := march.AddDate(0, 0, day).Add(time.Hour)
		w.used(end, api.MeterVCPU, 3600)
		w.customerUsed("org-shop-a", end, 3600)
		w.customerUsed("org-shop-a", end, 7200)
		w.customerUsed("org-shop-b", end, 36_000)
	}
	j := w.job()
	j.Step(t.Context(), april.Add(3*time.Hour))
	inv := w.invoices()
	if len(inv) != 1 {
		t.Fatalf("invoices of the reseller = %d, want 1", len(inv))
	}
	want := []lineOf{{"org-shop-a", "shop-a", 2 * 3000}, {"org-shop-b", "shop-b", 2 * 10_000}, {"ins-1", "", 4 * 1000}}
	if d := cmp.Diff(want, linesOf(inv[0].Spec.Lines)); d != "" {
		t.Errorf("lines of the reseller's invoice (-want +got):\n%s", d)
	}
	retail, err := Billing{w.Store}.documents(t.Context(), "org-shop-b")
	if err != nil || len(retail.Invoices) != 1 || retail.Invoices[0].Spec.Seller != "org-1" || retail.Invoices[0].Spec.TotalMicros != 4*100_000 {
		t.Errorf("invoices of the customer = %+v, %v; want one by the reseller of 400,000 micros", retail.Invoices, err)
	}
	// Use that becomes known later is charged later, to the reseller too.
	w.customerUsed("org-shop-b", march.AddDate(0, 0, 12).Add(2*time.Hour), 3600)
	w.customerUsed("org-shop-b", april.AddDate(0, 0, 1), 7200)
	w.job().Step(t.Context(), april.AddDate(0, 1, 0).Add(3*time.Hour))
	inv = w.invoices()
	if d := cmp.Diff([]lineOf{{"org-shop-b", "shop-b", 2000}, {"org-shop-b", "shop-b", 1000}}, linesOf(inv[1].Spec.Lines)); d != "" {
		t.Errorf("lines of the reseller's second invoice (-want +got):\n%s", d)
	}
	e, err := Billing{w.Store}.ExplainIssued(t.Context(), inv[0], inv[0].Spec.Lines[1].ID, march.AddDate(0, 0, 12))
	if err != nil || len(e.Hours) != 1 || len(e.Records) != 1 || e.Records[0].Meta.Organization != "org-shop-b" {
		t.Errorf("explanation of an hour of a customer's line = %+v, %v; want the hour and its record", e, err)
	}
}

// A running job has the same information about its resellers' customers as a new one:
// their use is charged to the reseller as it arrives, also if it is late.
func TestWholesaleAsItComes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.reseller(api.Wholesale{From: march})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindBudget, ID: "bud-1", Name: "all", Organization: "org-1",
		Data: api.Encode(api.BudgetSpec{AmountMicros: 1_000_000, AlertPercents: []int64{50, 80}})})
	j := w.job()
	for at, n := march.Add(time.Hour), 0; at.Before(march.AddDate(0, 0, 9)); n++ {
		at = at.Add(time.Duration(random.IntN(90)) * time.Minute)
		late := []time.Duration{0, 0, 0, 30 * time.Hour}[random.IntN(4)]
		if end := at.Add(-time.Duration(random.Int64N(int64(late + time.Minute)))); end.After(march) {
			w.customerUsed([]string{"org-shop-a", "org-shop-b"}[random.IntN(2)], end, random.Int64N(9000))
		}
		j.Step(t.Context(), at)
		before, budget := w.Revision(), w.budget()
		w.job().Step(t.Context(), at)
		if w.Revision() != before {
			t.Fatalf("%s: a new job writes more: budget %+v, want %+v", at, w.budget(), budget)
		}
	}
	if got := w.budget().SpentMicros; got == 0 {
		t.Errorf("used of the budget = %d micros, want more than 0", got)
	}
}

// What a reseller owes for a customer is reported until its invoice charges it.
func TestUninvoicedWholesale(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.reseller(api.Wholesale{From: march})
	end := march.Add(5 * time.Hour)
	w.customerUsed("org-shop-a", end, 3600)
	uninvoiced := func(id api.OrganizationID, now time.Time) api.Uninvoiced {
		t.Helper()
		u, err := Billing{w.Store}.UninvoicedWholesale(t.Context(), id, now)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	april := march.AddDate(0, 1, 0)
	if u := uninvoiced("org-shop-a", end); u.Micros != 1000 || u.Mark.Quantity != 3600 || !u.Mark.From.Equal(march) {
		t.Errorf("uninvoiced in the month of use = %+v, want 1,000 micros since %s", u, march)
	}
	if u := uninvoiced("org-shop-b", end); u.Micros != 0 || u.Mark.Quantity != 0 || u.Mark.From.IsZero() {
		t.Errorf("uninvoiced of a customer without use = %+v, want a mark with quantity 0", u)
	}
	if u := uninvoiced("org-1", end); u != (api.Uninvoiced{}) {
		t.Errorf("uninvoiced of the reseller = %+v, want nothing", u)
	}
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	if u := uninvoiced("org-shop-a", april.Add(4*time.Hour)); u.Micros != 0 || u.Mark.Quantity != 0 {
		t.Errorf("uninvoiced after the reseller's invoice = %+v, want nothing", u)
	}
}

// The use of many organizations is merged in the order that rating expects.
func TestMerged(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.reseller(api.Wholesale{From: march})
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 * maxMergedUse {
		w.customerUsed([]string{"org-shop-a", "org-shop-b"}[random.IntN(2)], march.Add(time.Duration(random.IntN(700))*time.Hour+time.Minute), 60+random.Int64N(9))
	}
	all, err := Billing{w.Store}.charged(t.Context(), "org-1", march, march.AddDate(0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	var got []api.Use
	sum := int64(0)
	for u, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got, sum = append(got, u), sum+u.Quantity
	}
	if !slices.IsSortedFunc(got, api.Use.Compare) || sum < 3*maxMergedUse*60 {
		t.Errorf("merged use = %d rows of %d units, want all of them in order", len(got), sum)
	}
}

// A reseller pays for the use of its customers' customers, under its customer's name,
// and its customer, if it has wholesale terms itself, pays the reseller for them.
func TestWholesaleOfCustomersOfCustomers(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.reseller(api.Wholesale{From: march})
	terms := api.DefaultBilling(nil, &api.OrganizationBilling{Mode: api.BillingInvoice, Since: march, Wholesale: []api.Wholesale{{From: march}}}, march)
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-shop-a", Expect: api.AnyRevision, Data: api.Encode(api.OrganizationSpec{Parent: "org-1", Billing: terms})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-end", Name: "end", Organization: "org-shop-a", Data: api.Encode(api.OrganizationSpec{Parent: "org-shop-a"})})
	w.customerUsed("org-end", march.Add(time.Hour), 3600)
	w.customerUsed("org-shop-a", march.Add(time.Hour), 7200)
	april := march.AddDate(0, 1, 0)
	u, err := Billing{w.Store}.UninvoicedWholesale(t.Context(), "org-end", april.Add(-time.Hour))
	if err != nil || u.Micros != 10_000 || u.Mark.Quantity != 3600 {
		t.Errorf("uninvoiced of the last customer = %+v, %v; want the 10,000 micros of the one above it", u, err)
	}
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	if d := cmp.Diff([]lineOf{{"org-shop-a", "shop-a", 3000}}, linesOf(w.invoices()[0].Spec.Lines)); d != "" {
		t.Errorf("lines of the reseller's invoice (-want +got):\n%s", d)
	}
	between, err := Billing{w.Store}.documents(t.Context(), "org-shop-a")
	if err != nil || len(between.Invoices) != 1 {
		t.Fatalf("invoices of the customer = %d, %v; want 1", len(between.Invoices), err)
	}
	if d := cmp.Diff([]lineOf{{"org-end", "end", 10_000}, {"ins-org-shop-a-0", "", 20_000}}, linesOf(between.Invoices[0].Spec.Lines)); d != "" {
		t.Errorf("lines of its customer's invoice (-want +got):\n%s", d)
	}
	if u, err = (Billing{w.Store}).UninvoicedWholesale(t.Context(), "org-end", april.Add(4*time.Hour)); err != nil || u.Micros != 0 || u.Mark.Quantity != 0 {
		t.Errorf("uninvoiced after the invoices = %+v, %v; want nothing", u, err)
	}
}
