package invoicing

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// TestQuote checks that a quote is the month that package invoice rates, by both prices,
// with the flavor's sizes and the default pool.
func TestQuote(t *testing.T) {
	before, after := pricebook.Default(), pricebook.Default()
	after.Prices[0].PriceMicros *= 3
	flavor := api.Flavor{Meta: api.Meta{ID: "flv-1"}, Spec: api.FlavorSpec{Vcpus: 2, MemoryBytes: 4 << 30, RootBytes: 20 << 30}}
	q := api.PriceQuoteQuery{Book: api.PriceBook{Spec: before}, Flavor: flavor, Begin: march,
		Request: api.PriceQuoteRequest{Flavor: "small", Hours: 100, VramBytes: 8 << 30, SharePercent: 50, Model: "NVIDIA L4", StorageClass: "local", GpuPercent: 80, Prices: &after}}
	got, err := Billing{}.Quote(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Vcpus != 2 || got.MemoryBytes != 4<<30 || got.RootBytes != 20<<30 || got.Currency != "EUR" {
		t.Errorf("quote = %+v, want the sizes of the flavor in EUR", got)
	}
	m := invoice.Machine{VCPUs: 2, MemoryBytes: 4 << 30, RootBytes: 20 << 30, StorageClass: "local", Flavor: "flv-1",
		VRAMBytes: 8 << 30, SharePercent: 50, Model: "NVIDIA L4", Pool: api.DefaultPool}
	for name, c := range map[string]struct {
		prices api.PriceBookSpec
		got    api.QuotedMonth
	}{"current": {before, got.Current}, "changed": {after, *got.Changed}} {
		want, err := invoice.QuoteMonth(pricebook.Always(c.prices), march, m, 100, 80)
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, x := range c.got.Meters {
			if x.AmountMicros != want.Micros[x.Meter] {
				t.Errorf("%s costs of %s = %d, want %d", name, x.Meter, x.AmountMicros, want.Micros[x.Meter])
			}
			sum += x.AmountMicros
		}
		quoter, err := invoice.NewQuoter(pricebook.Always(c.prices), march)
		if err != nil {
			t.Fatal(err)
		}
		for percent, of := range map[int64]func(api.QuotedEnds) int64{0: func(e api.QuotedEnds) int64 { return e.ReservedMicros }, 100: func(e api.QuotedEnds) int64 { return e.FullUseMicros }} {
			hour, err := quoter.Quote(m, percent)
			if err != nil {
				t.Fatal(err)
			}
			month, err := invoice.QuoteMonth(pricebook.Always(c.prices), march, m, 100, percent)
			if err != nil {
				t.Fatal(err)
			}
			if of(c.got.Hour) != hour.TotalMicros || of(c.got.Month) != month.TotalMicros {
				t.Errorf("%s costs at %d%% = %d an hour and %d a month, want %d and %d", name, percent, of(c.got.Hour), of(c.got.Month), hour.TotalMicros, month.TotalMicros)
			}
		}
		if c.got.Month.ReservedMicros >= c.got.TotalMicros || c.got.TotalMicros >= c.got.Month.FullUseMicros {
			t.Errorf("%s total = %d, want it between %d and %d", name, c.got.TotalMicros, c.got.Month.ReservedMicros, c.got.Month.FullUseMicros)
		}
		if c.got.TotalMicros != want.TotalMicros || sum != want.TotalMicros || len(c.got.Meters) != len(want.Micros) {
			t.Errorf("%s total = %d of %d meters that add up to %d, want %d of %d", name, c.got.TotalMicros, len(c.got.Meters), sum, want.TotalMicros, len(want.Micros))
		}
	}
	if difference := got.Changed.TotalMicros - got.Current.TotalMicros; difference != 2*2*100*10_000 {
		t.Errorf("difference = %d micros, want twice the price of 200 vCPU hours", difference)
	}
	q.Book.Spec.Prices = nil
	if _, err := (Billing{}).Quote(t.Context(), q); api.CodeOf(err) != api.CodeState {
		t.Errorf("quote without prices: %v, want %s", err, api.CodeState)
	}
}
