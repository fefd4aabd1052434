package invoicing

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// changed changes a price book at a time, as the server does.
func (w *fixture) changed(id string, at time.Time, change func(s *api.PriceBookSpec)) {
	w.t.Helper()
	old := decodeOf[api.PriceBook](w, api.KindPriceBook, id)
	next := old.Spec
	next.Prices = slices.Clone(next.Prices)
	change(&next)
	next, keep, err := api.ChangedPriceBook(api.PriceBookID(id), old.Spec, next, at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(append(keep, api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: id, Expect: old.Meta.Revision, Data: api.Encode(next)})...)
}

// assigned assigns the organization another price book at a time, as the server does.
func (w *fixture) assigned(book api.PriceBookID, at time.Time) {
	w.t.Helper()
	old := decodeOf[api.Organization](w, api.KindOrganization, "org-1")
	next := old.Spec
	next.PriceBook = book
	next, err := api.AssignedPriceBook(old.Spec, next, at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Expect: old.Meta.Revision, Data: api.Encode(next)})
}

func decodeOf[T any](w *fixture, kind api.Kind, id string) T {
	w.t.Helper()
	o, err := w.Get(w.t.Context(), kind, id)
	if err != nil {
		w.t.Fatal(err)
	}
	x, err := api.Decode[T](o)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

// total returns the total of a preview, in micros.
func (w *fixture) total(from, to time.Time) int64 {
	w.t.Helper()
	p, err := Billing{w.Store}.InvoicePreview(w.t.Context(), "org-1", from, to)
	if err != nil {
		w.t.Fatal(err)
	}
	return p.TotalMicros
}

func priceOf(m api.Meter, micros int64) func(*api.PriceBookSpec) {
	return func(s *api.PriceBookSpec) {
		i := slices.IndexFunc(s.Prices, func(p api.Price) bool { return p.Meter == m })
		s.Prices[i].PriceMicros = micros
	}
}

// An edited price applies from the next hour on: the open month before it keeps the old
// one, an invoiced month and its export stay the same, and late use of either costs
// what it did then.
func TestAnEditedPriceLeavesThePast(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	april, may := march.AddDate(0, 1, 0), march.AddDate(0, 2, 0)
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	before := w.exported(march, april)

	w.used(april.AddDate(0, 0, 1), api.MeterVCPU, 3600)
	edited := april.AddDate(0, 0, 9).Add(20 * time.Minute)
	w.changed("pb-1", edited, priceOf(api.MeterVCPU, 50_000))
	w.used(april.AddDate(0, 0, 9).Add(time.Hour), api.MeterVCPU, 3600) // the hour had begun
	w.used(april.AddDate(0, 0, 9).Add(2*time.Hour), api.MeterVCPU, 3600)
	if got := w.total(april, may); got != 10_000+10_000+50_000 {
		t.Errorf("total of the open month = %d micros, want two hours at 10,000 and one at 50,000", got)
	}
	if got := w.total(march, april); got != 10_000 {
		t.Errorf("total of the invoiced month = %d micros, want 10,000", got)
	}
	if d := cmp.Diff(before, w.exported(march, april)); d != "" {
		t.Errorf("export of the invoiced month changed (-before +after):\n%s", d)
	}
	w.used(march.Add(5*time.Hour), api.MeterVCPU, 3600) // late
	w.changed("pb-1", edited.AddDate(0, 0, 3), priceOf(api.MeterVCPU, 90_000))
	w.job().Step(t.Context(), may.Add(3*time.Hour))
	all := w.invoices()
	if len(all) != 2 || all[1].Spec.TotalMicros != 70_000+10_000 || len(all[1].Spec.Editions) != 3 {
		t.Fatalf("invoices = %+v, want 70,000 micros of April by three editions and 10,000 late of March", all)
	}
	if d := cmp.Diff(before, w.exported(march, april)); d != "" {
		t.Errorf("export of the invoiced month changed after late use (-before +after):\n%s", d)
	}
	for _, l := range all[1].Spec.Lines {
		if l.Kind != api.LineUsage {
			continue
		}
		e, err := Billing{w.Store}.ExplainIssued(t.Context(), all[1], l.ID, time.Time{})
		if err != nil || len(e.Hours) == 0 {
			t.Errorf("explanation of line %+v = %+v, %v; want some hours", l, e, err)
		}
	}
}

// exported returns the BilledCost of each row of a period's export.
func (w *fixture) exported(from, to time.Time) (rows []string) {
	w.t.Helper()
	var out strings.Builder
	if err := (Billing{w.Store}).Export(w.t.Context(), "org-1", from, to, api.ExportFOCUS, &out); err != nil {
		w.t.Fatal(err)
	}
	all, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	cost := slices.Index(all[0], "BilledCost")
	for _, r := range all[1:] {
		rows = append(rows, r[cost])
	}
	return rows
}

// Another price book applies from the hour in which the switch takes effect, also if
// the first book is deleted later.
func TestPriceBookChangeKeepsPast(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	april := march.AddDate(0, 1, 0)
	for id, micros := range map[string]int64{"pb-2": 20_000, "pb-3": 30_000} {
		spec := pricebook.Default()
		priceOf(api.MeterVCPU, micros)(&spec)
		w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: id, Name: id, Data: api.Encode(api.NewPriceBook(spec))})
	}
	day := func(d int) time.Time { return march.AddDate(0, 0, d) }
	for _, d := range []int{1, 11, 21} {
		w.used(day(d), api.MeterVCPU, 3600)
	}
	w.assigned("pb-2", day(10))
	w.assigned("pb-3", day(20).Add(time.Minute))
	if got := w.total(march, april); got != 10_000+20_000+30_000 {
		t.Errorf("total of the month = %d micros, want an hour by each book", got)
	}
	w.put(append(api.DeletedPriceBook("pb-2", decodeOf[api.PriceBook](w, api.KindPriceBook, "pb-2").Spec),
		api.Command{Op: api.OpDelete, Kind: api.KindPriceBook, ID: "pb-2", Expect: api.AnyRevision})...)
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	if all := w.invoices(); len(all) != 1 || all[0].Spec.TotalMicros != 60_000 {
		t.Fatalf("invoices = %+v, want one of 60,000 micros", all)
	}
}

// A commitment that begins in the middle of a month is charged, and covers use, for the
// rest of it; if the price book changes, each commitment for its part.
func TestCommitmentsAreProrated(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	april := march.AddDate(0, 1, 0)
	half := march.Add(april.Sub(march) / 2)
	w.changed("pb-1", march.Add(-time.Hour), func(s *api.PriceBookSpec) {
		s.Commitments = []api.Commitment{{Meter: api.MeterVCPU, Quantity: 100, Per: 3600, PriceMicros: 4000, From: half}}
	})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)     // before: at its price
	w.used(april.Add(-time.Hour), api.MeterVCPU, 60*3600) // 50 of it are paid for
	if got, want := w.total(march, april), int64(10_000+50*4000+10*10_000); got != want {
		t.Errorf("total of the month = %d micros, want %d", got, want)
	}
	w.changed("pb-1", half.Add(april.Sub(half)/2), func(s *api.PriceBookSpec) { s.Commitments = nil })
	if got, want := w.total(march, april), int64(10_000+25*4000+60*10_000); got != want {
		t.Errorf("total of the month in which the commitment ends = %d micros, want %d", got, want)
	}
}

// Whatever changes at any time, in books and in their assignment: every hour costs what
// was in effect when it began, and a change does not affect earlier hours.
func TestPriceOfEachHour(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	other := api.NewPriceBook(pricebook.Default())
	priceOf(api.MeterVCPU, 7000)(&other)
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-2", Name: "other", Data: api.Encode(other)})
	prices, book := map[string]int64{"pb-1": 10_000, "pb-2": 7000}, "pb-1"
	var want, last int64
	for h := range 200 {
		begin := march.Add(time.Duration(h) * time.Hour)
		want += prices[book]
		w.used(begin.Add(time.Hour), api.MeterVCPU, 3600)
		at := begin.Add(time.Duration(1+h%59) * time.Minute)
		if last = w.total(march, begin.Add(time.Hour)); last != want {
			t.Fatalf("total after %d hours = %d micros, want %d", h, last, want)
		}
		switch h % 7 {
		case 2:
			id := []string{"pb-1", "pb-2"}[h/7%2]
			prices[id] = int64(1000 + h)
			w.changed(id, at, priceOf(api.MeterVCPU, 1))          // replaced
			w.changed(id, at, priceOf(api.MeterVCPU, prices[id])) // before it takes effect
		case 5:
			book = []string{"pb-2", "pb-1"}[h/7%2]
			w.assigned(api.PriceBookID(map[string]string{"pb-1": "", "pb-2": "pb-2"}[book]), at)
		}
		if got := w.total(march, begin.Add(time.Hour)); got != last {
			t.Fatalf("total after a change in hour %d = %d micros, want %d", h, got, last)
		}
	}
}
