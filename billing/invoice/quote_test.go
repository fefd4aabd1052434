package invoice

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

var (
	models  = []string{"NVIDIA L4", "NVIDIA H100", "NVIDIA A100"}
	pools   = []string{"default", "slow", "fast"}
	classes = []string{"local", "ceph"}
	flavors = []string{"flv-1", "flv-2"}
)

func of[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

func quote(prices pricebook.Schedule, hour time.Time, m Machine, percent int64) (Quoted, error) {
	q, err := NewQuoter(prices, hour)
	if err != nil {
		return Quoted{}, err
	}
	return q.Quote(m, percent)
}

// randomBook has a price for every meter, additional ones with random selectors, tiers,
// later prices and discounts; and commitments, a minimum and taxes, which quotes do not
// contain.
func randomBook(r *rand.Rand, hour time.Time) api.PriceBookSpec {
	b := pricebook.Default()
	maybe := func(s string) string {
		if r.IntN(3) > 0 {
			return ""
		}
		return s
	}
	for i := range b.Prices {
		b.Prices[i].PriceMicros = r.Int64N(5_000_000)
		if r.IntN(4) == 0 {
			b.Prices[i].Tiers = []api.PriceTier{{UpTo: 1 + r.Int64N(3), PriceMicros: r.Int64N(1000)}, {UpTo: 4 + r.Int64N(3), PriceMicros: r.Int64N(1000)}}
		}
	}
	if r.IntN(4) == 0 {
		b.Prices = slices.DeleteFunc(b.Prices, func(p api.Price) bool { return p.Meter == api.MeterGPUPremium || p.Meter == api.MeterGPUBasic })
	}
	if r.IntN(4) == 0 {
		b.Prices = slices.DeleteFunc(b.Prices, func(p api.Price) bool { return p.Meter == api.MeterGPUShare })
	}
	seen := map[string]bool{}
	for range r.IntN(8) {
		p := b.Prices[r.IntN(len(b.Prices))]
		p.Where = api.PriceSelector{Model: maybe(of(r, models)), Pool: maybe(of(r, pools)), Flavor: maybe(of(r, flavors)), StorageClass: maybe(of(r, classes))}
		if p.Meter == api.MeterGPUShare {
			p.Where.Tier = maybe(string(of(r, api.GPUTiers())))
		}
		if r.IntN(3) == 0 {
			p.From = hour.Add(time.Duration(r.IntN(5)-2) * time.Hour)
		}
		p.PriceMicros, p.Tiers = r.Int64N(5_000_000), nil
		if key := fmt.Sprint(p.Meter, p.Where, p.From.Unix()); !seen[key] && p.Where != (api.PriceSelector{}) {
			seen[key] = true
			if !slices.ContainsFunc(b.Prices, func(q api.Price) bool { return q.Meter == p.Meter && q.Where == p.Where && q.From.Equal(p.From) }) {
				b.Prices = append(b.Prices, p)
			}
		}
	}
	for range r.IntN(3) {
		b.Discounts = append(b.Discounts, api.Discount{BasisPoints: 1 + r.Int64N(9_999)})
	}
	b.MinimumMicros = r.Int64N(10_000_000)
	return b
}

func randomMachine(r *rand.Rand) Machine {
	m := Machine{VCPUs: 1 + r.Int64N(64), MemoryBytes: (1 + r.Int64N(1<<14)) << 20, RootBytes: r.Int64N(1 << 40), StorageClass: of(r, classes), Flavor: of(r, flavors)}
	if r.IntN(5) > 0 {
		m.VRAMBytes, m.SharePercent, m.Model, m.Pool, m.Tier = (16+r.Int64N(80<<10))<<20, r.Int64N(101), of(r, models), of(r, pools), of(r, append(api.GPUTiers(), ""))
	}
	if r.IntN(5) == 0 {
		m.VCPUs, m.MemoryBytes, m.RootBytes, m.Flavor = 0, 0, 0, ""
	}
	return m
}

// meteredHour returns the usage that a node records of the machine in the hour, with
// the agent's own meter.
func meteredHour(t *testing.T, m Machine, hour time.Time, gpuPercent int64) (all []api.Use) {
	t.Helper()
	end := hour.Add(time.Hour)
	nanos := uint64(time.Hour) / 100 * uint64(gpuPercent)
	totals := meter.Totals{}
	attributes := api.PriceSelector{Flavor: m.Flavor}
	rates := meter.Rates{api.MeterVCPU: uint64(m.VCPUs), api.MeterMemory: uint64(m.MemoryBytes)}
	if m.VRAMBytes > 0 {
		totals.VRAMByteSeconds, totals.GPUNanos = uint64(m.VRAMBytes)*3600, nanos
		attributes.Model, attributes.Pool, attributes.Tier = m.Model, m.Pool, string(m.Tier)
		switch m.Tier {
		case api.TierPremium:
			totals.PremiumNanos = nanos
		case api.TierBasic:
			totals.BasicNanos = nanos
		case "":
			attributes.Tier = string(api.TierStandard)
		}
		rates[api.MeterGPUShare] = uint64(m.SharePercent)
	}
	observe := func(id string, o meter.Observation) {
		o.Run = "run"
		s, _ := meter.Advance(meter.Resource{ID: id, Project: "p"}, meter.State{}, meter.Observation{At: hour, Run: "run", Rates: o.Rates, Attributes: o.Attributes, Totals: &meter.Totals{}})
		_, cmds := meter.Advance(meter.Resource{ID: id, Project: "p"}, s, o)
		for _, c := range cmds {
			spec, err := api.Decode[api.UsageRecord](api.Object{Kind: c.Kind, Meta: api.Meta{ID: c.ID, Project: c.Project}, Spec: c.Data})
			if err != nil {
				t.Fatal(err)
			}
			u, ok := api.UseOf(spec)
			if !ok {
				t.Fatalf("record %s has no valid usage", c.Data)
			}
			all = append(all, u)
		}
	}
	observe("ins-1", meter.Observation{At: end, Rates: rates, Attributes: attributes, Totals: &totals})
	observe("vol-1", meter.Observation{At: end, Rates: meter.Rates{api.MeterVolume: uint64(m.RootBytes)}, Attributes: api.PriceSelector{StorageClass: m.StorageClass}, Totals: nil})
	slices.SortFunc(all, api.Use.Compare)
	return all
}

// TestQuoteIsTheInvoice checks that the quoted costs of an hour are those of an invoice
// of what the node meters in it: with an idle and a fully used GPU, for random
// machines, tiers and price books. The invoice also has commitments, a minimum and
// taxes.
func TestQuoteIsTheInvoice(t *testing.T) {
	hour := time.Date(2026, 10, 14, 9, 0, 0, 0, time.UTC)
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(22, seed))
		prices, m := pricebook.Always(randomBook(r, hour)), randomMachine(r)
		for _, percent := range []int64{0, 100, r.Int64N(101)} {
			q, err := quote(prices, hour, m, percent)
			if err != nil {
				t.Fatalf("seed %d: quote: %v", seed, err)
			}
			rating, err := NewRating("org", prices, Whole(hour, hour.Add(time.Hour)))
			if err != nil {
				t.Fatalf("seed %d: new rating: %v", seed, err)
			}
			rating.SetTaxation(Taxation{Taxes: []tariff.Tax{vat}})
			for _, u := range meteredHour(t, m, hour, percent) {
				if err := rating.Add(u); err != nil {
					t.Fatalf("seed %d: add use: %v", seed, err)
				}
			}
			inv, err := rating.Invoice()
			if err != nil {
				t.Fatalf("seed %d: invoice: %v", seed, err)
			}
			sum, by := int64(0), map[api.Meter]int64{}
			for _, l := range inv.Lines {
				if l.Kind == api.LineUsage {
					sum += l.AmountMicros
					by[l.Meter] += l.AmountMicros
				}
			}
			if q.TotalMicros != sum || q.Currency != inv.Currency {
				t.Fatalf("seed %d: %d %% of the GPU of %+v quoted at %d %s (%v), want the invoice's %d %s (%v)", seed, percent, m, q.TotalMicros, q.Currency, q.Micros, sum, inv.Currency, by)
			}
			for meter, micros := range by {
				if q.Micros[meter] != micros {
					t.Fatalf("seed %d: quoted costs of %s = %d, want the invoice's %d", seed, meter, q.Micros[meter], micros)
				}
			}
		}
	}
}

// TestMonthIsTheInvoice checks that the quoted costs of a month are those of an invoice
// of what the node meters in it, for random machines and price books, with prices and
// tiers that change during the month.
func TestMonthIsTheInvoice(t *testing.T) {
	begin := time.Date(2026, 10, 14, 9, 0, 0, 0, time.UTC)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(76, seed))
		prices, m := pricebook.Always(randomBook(r, begin)), randomMachine(r)
		hours, percent := r.Int64N(QuotedHours+1), r.Int64N(101)
		q, err := QuoteMonth(prices, begin, m, hours, percent)
		if err != nil {
			t.Fatalf("seed %d: quote: %v", seed, err)
		}
		rating, err := NewRating("org", prices, Whole(begin, begin.Add(QuotedHours*time.Hour)))
		if err != nil {
			t.Fatalf("seed %d: new rating: %v", seed, err)
		}
		for i := range int64(QuotedHours) {
			at := begin.Add(time.Duration(i) * time.Hour)
			for _, u := range meteredHour(t, m, at, percent) {
				if u.Resource == "ins-1" && i >= hours {
					continue
				}
				if err := rating.Add(u); err != nil {
					t.Fatalf("seed %d: add use: %v", seed, err)
				}
			}
		}
		inv, err := rating.Invoice()
		if err != nil {
			t.Fatalf("seed %d: invoice: %v", seed, err)
		}
		sum, by := int64(0), map[api.Meter]int64{}
		for _, l := range inv.Lines {
			if l.Kind == api.LineUsage {
				sum += l.AmountMicros
				by[l.Meter] += l.AmountMicros
			}
		}
		if q.TotalMicros != sum || !maps.Equal(q.Micros, by) {
			t.Fatalf("seed %d: %d hours of %+v quoted at %d (%v), want the invoice's %d (%v)", seed, hours, m, q.TotalMicros, q.Micros, sum, by)
		}
	}
}

// TestMonthOfAStoppedMachine checks that a stopped machine costs its volume.
func TestMonthOfAStoppedMachine(t *testing.T) {
	begin := time.Date(2026, 10, 14, 9, 0, 0, 0, time.UTC)
	m := Machine{VCPUs: 2, MemoryBytes: 4 << 30, RootBytes: 20 << 30, StorageClass: "local"}
	got, err := QuoteMonth(pricebook.Always(pricebook.Default()), begin, m, 0, 0)
	if want := int64(20 * 50_000); err != nil || got.TotalMicros != want || got.Micros[api.MeterVolume] != want {
		t.Errorf("month of a stopped machine with 20 GiB = %+v, %v, want %d micros of %s", got, err, want, api.MeterVolume)
	}
}

// TestQuoteHasNoCommitment checks that quotes do not contain a commitment, which covers
// usage of a whole period.
func TestQuoteHasNoCommitment(t *testing.T) {
	hour := time.Date(2026, 10, 14, 9, 0, 0, 0, time.UTC)
	book := pricebook.Default()
	m := Machine{VCPUs: 2}
	want, err := quote(pricebook.Always(book), hour, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	book.Commitments = []api.Commitment{{Meter: api.MeterVCPU, Quantity: 100, Per: 3600, PriceMicros: 1}}
	got, err := quote(pricebook.Always(book), hour, m, 0)
	if err != nil || got.TotalMicros != want.TotalMicros || got.TotalMicros == 0 {
		t.Errorf("quote with a commitment = %+v, %v, want %+v", got, err, want)
	}
}

func TestQuoteWithoutAPrice(t *testing.T) {
	book := pricebook.Default()
	book.Prices = slices.DeleteFunc(book.Prices, func(p api.Price) bool { return p.Meter == api.MeterVRAM })
	_, err := quote(pricebook.Always(book), time.Date(2026, 10, 14, 9, 0, 0, 0, time.UTC), Machine{VRAMBytes: 1 << 30}, 0)
	if api.CodeOf(err) != api.CodeState {
		t.Errorf("quote without a price of VRAM: %v, want %s", err, api.CodeState)
	}
}
