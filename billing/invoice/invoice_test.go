package invoice

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/ledger"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

var (
	october  = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	november = october.AddDate(0, 1, 0)
	december = october.AddDate(0, 2, 0)
)

// Units of the default prices.
const (
	hour    = 3600                 // seconds
	gib     = 1 << 30              // bytes
	gpuHour = hour * 1_000_000_000 // nanoseconds
	cent    = 10_000               // micros
	million = 1_000_000            // launches
)

// rollUp sums records to usage, each once, as a store does.
func rollUp(records []api.UsageRecord) (all []api.Use) {
	seen := map[string]bool{}
	for _, o := range records {
		u, ok := api.UseOf(o)
		if !ok || seen[o.Meta.ID] {
			continue
		}
		seen[o.Meta.ID] = true
		i, found := slices.BinarySearchFunc(all, u, api.Use.Compare)
		if found {
			all[i] = all[i].Plus(u)
		} else {
			all = slices.Insert(all, i, u)
		}
	}
	return all
}

// vat is a tax of invoices.
var vat = tariff.Tax{Name: "VAT", BasisPoints: 1900}

// invoice returns the invoice of the usage in the period.
func invoice(t *testing.T, spec api.PriceBookSpec, from, to time.Time, all []api.Use, taxes ...tariff.Tax) api.InvoicePreview {
	t.Helper()
	r, err := NewRating("org-1", pricebook.Always(spec), Whole(from, to))
	if err != nil {
		t.Fatal(err)
	}
	r.SetTaxation(Taxation{Taxes: taxes})
	q := api.UseQuery{From: from, To: to}
	for _, u := range all {
		if !q.Has(u) {
			continue
		}
		if err := r.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.Invoice()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// issued returns an issued invoice with the content of a preview.
func issued(p api.InvoicePreview) api.Invoice {
	id := IDOf(p.Organization, p.From)
	return api.Invoice{Meta: api.Meta{ID: string(id), Organization: string(p.Organization), CreatedAt: p.To},
		Spec: api.InvoiceSpec{Number: "INV-000001", From: p.From, To: p.To, Currency: p.Currency, Lines: p.Lines, TotalMicros: p.TotalMicros}}
}

func useAt(hour time.Time, resource string, m api.Meter, q int64) api.Use {
	return api.Use{Hour: hour, Project: "prj-1", Resource: resource, ResourceName: "name of " + resource, NamedAt: hour, Meter: m, Quantity: q}
}

func TestInvoiceOfTheDefaultPrices(t *testing.T) {
	p := invoice(t, pricebook.Default(), october, november, []api.Use{
		useAt(october.Add(-time.Hour), "ins-1", api.MeterVCPU, 1800), // September
		useAt(october, "ins-0", api.MeterLaunch, 12345),
		useAt(october, "ins-1", api.MeterGPU, gpuHour/2),
		useAt(october, "ins-1", api.MeterVCPU, 3600),
		useAt(november.Add(-time.Hour), "ins-1", api.MeterVCPU, 5400),
		useAt(november, "ins-1", api.MeterVCPU, 1800), // November
	})
	want := []api.InvoiceLine{
		{Resource: "ins-0", ResourceName: "name of ins-0", Meter: api.MeterLaunch, Quantity: api.Units(12345), Per: million, Unit: "million launches", From: october, To: october.Add(time.Hour)},
		{Resource: "ins-1", ResourceName: "name of ins-1", Meter: api.MeterGPU, Quantity: api.Units(gpuHour / 2), Per: gpuHour, PriceMicros: 180 * cent, Unit: "GPU hour", From: october, To: october.Add(time.Hour), AmountMicros: 900_000},
		{Resource: "ins-1", ResourceName: "name of ins-1", Meter: api.MeterVCPU, Quantity: api.Units(9000), Per: hour, PriceMicros: cent, Unit: "vCPU hour", From: october, To: november, AmountMicros: 25_000},
	}
	for i := range want {
		want[i].Kind, want[i].Project, want[i].ID = api.LineUsage, "prj-1", p.Lines[i].ID
	}
	if d := cmp.Diff(want, p.Lines); d != "" || p.TotalMicros != 925_000 || p.Currency != "EUR" {
		t.Errorf("total = %d %s, want 925000 EUR; lines: mismatch (-want +got):\n%s", p.TotalMicros, p.Currency, d)
	}
}

func TestInvoiceOfABookWithEverything(t *testing.T) {
	spec := api.PriceBookSpec{Currency: "EUR", MinimumMicros: 1000,
		Prices: []api.Price{
			{Meter: api.MeterVCPU, Per: 10, Unit: "ten", PriceMicros: 50, Tiers: []api.PriceTier{{UpTo: 1}, {UpTo: 3, PriceMicros: 100}}},
			{Meter: api.MeterGPU, Per: 1, PriceMicros: 10},
			{Meter: api.MeterGPU, Per: 1, PriceMicros: 20, From: october.Add(time.Hour)},
		},
		Commitments: []api.Commitment{{Meter: api.MeterGPU, Quantity: 3, Per: 1, PriceMicros: 7}},
		Discounts:   []api.Discount{{Meters: []api.Meter{api.MeterGPU}, BasisPoints: 5000, From: october.Add(time.Hour)}},
	}
	if err := api.ValidatePriceBook(spec); err != nil {
		t.Fatal(err)
	}
	p := invoice(t, spec, october, november, []api.Use{
		useAt(october, "a", api.MeterGPU, 4), useAt(october, "a", api.MeterVCPU, 40), useAt(october.Add(time.Hour), "a", api.MeterGPU, 2),
	}, vat)
	var got []string
	sum, ids := int64(0), map[string]bool{}
	for _, l := range p.Lines {
		got = append(got, fmt.Sprintf("%s %s%s ×%s tier %d %v: %d (-%d)", l.Kind, l.Meter, l.Name, l.Quantity, l.Tier, l.Committed, l.AmountMicros, l.DiscountMicros))
		sum += l.AmountMicros
		ids[l.ID] = true
	}
	want := []string{
		"usage gpu-nanoseconds ×3 tier 0 true: 0 (-0)",
		"usage gpu-nanoseconds ×1 tier 0 false: 10 (-0)",
		"usage gpu-nanoseconds ×2 tier 0 false: 20 (-20)",
		"usage vcpu-seconds ×10 tier 1 false: 0 (-0)",
		"usage vcpu-seconds ×20 tier 2 false: 200 (-0)",
		"usage vcpu-seconds ×10 tier 3 false: 50 (-0)",
		"commitment gpu-nanoseconds ×3 tier 0 false: 21 (-0)",
		"minimum  ×0 tier 0 false: 699 (-0)",
		"tax VAT ×0 tier 0 false: 190 (-0)",
	}
	if d := cmp.Diff(want, got); d != "" || sum != p.TotalMicros || sum != 1190 || len(ids) != len(want) {
		t.Errorf("total = %d, sum of the lines = %d, %d IDs; want 1190 and %d IDs; lines: mismatch (-want +got):\n%s", p.TotalMicros, sum, len(ids), len(want), d)
	}
	tx := ledger.OfInvoice(issued(p))
	wantTx := []ledger.Entry{{Debit: "receivable/org-1", Credit: "revenue/gpu-nanoseconds", Micros: 51}, {Debit: "receivable/org-1", Credit: "revenue/minimum", Micros: 699}, {Debit: "receivable/org-1", Credit: "revenue/vcpu-seconds", Micros: 250}, {Debit: "receivable/org-1", Credit: "tax/VAT", Micros: 190}}
	if d := cmp.Diff(wantTx, tx.Entries); d != "" {
		t.Errorf("ledger entries: mismatch (-want +got):\n%s", d)
	}
}

func TestDefaultPriceBookPricesEverything(t *testing.T) {
	book := pricebook.Default()
	if err := api.ValidatePriceBook(book); err != nil {
		t.Fatal(err)
	}
	for _, m := range api.Meters() {
		if !slices.ContainsFunc(book.Prices, func(p api.Price) bool { return p.Meter == m }) {
			t.Errorf("meter %s has no price in the default price book", m)
		}
	}
}

// TestTiersWithoutAPrice checks that a price book from before the GPU tiers charges
// them like the standard one, and still does so for invoiced usage when the tiers get
// prices of their own.
func TestTiersWithoutAPrice(t *testing.T) {
	old := pricebook.Default()
	old.Prices = slices.DeleteFunc(slices.Clone(old.Prices), func(p api.Price) bool { return p.Meter == api.MeterGPUPremium || p.Meter == api.MeterGPUBasic })
	total := func(spec api.PriceBookSpec, m api.Meter) int64 {
		t.Helper()
		r, err := NewRating("org-1", pricebook.Always(spec), Whole(october, november))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Add(useAt(october, "a", m, 3600e9)); err != nil {
			t.Fatal(err)
		}
		inv, err := r.Invoice()
		if err != nil {
			t.Fatal(err)
		}
		return inv.TotalMicros
	}
	for _, m := range []api.Meter{api.MeterGPUPremium, api.MeterGPUBasic} {
		for name, spec := range map[string]api.PriceBookSpec{"old": old, "old, completed by new": pricebook.Always(old).Completed(pricebook.Default())[0].Prices} {
			if got, want := total(spec, m), total(old, api.MeterGPU); got != want || want == 0 {
				t.Errorf("usage of %s with the %s book costs %d, want %d", m, name, got, want)
			}
		}
	}
	if got := total(pricebook.Default(), api.MeterGPUPremium); got != 2_700_000 {
		t.Errorf("an hour of the premium tier costs %d, want 2700000", got)
	}
}

func TestRefused(t *testing.T) {
	dear := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: 1e15, Per: 1}}}
	for name, c := range map[string]struct {
		use  []api.Use
		book api.PriceBookSpec
		code api.Code
	}{
		"negative":       {[]api.Use{useAt(october, "a", api.MeterVCPU, -1)}, pricebook.Default(), api.CodeInvalid},
		"twice":          {[]api.Use{useAt(october, "a", api.MeterVCPU, 1), useAt(october, "a", api.MeterVCPU, 1)}, pricebook.Default(), api.CodeInvalid},
		"another period": {[]api.Use{useAt(november, "a", api.MeterVCPU, 1)}, pricebook.Default(), api.CodeInvalid},
		"no price":       {[]api.Use{useAt(october, "a", api.MeterVCPU, 1)}, api.PriceBookSpec{Currency: "EUR"}, api.CodeState},
		"line":           {[]api.Use{useAt(october, "a", api.MeterVCPU, 1e5)}, dear, api.CodeTooLarge},
		"total":          {[]api.Use{useAt(october, "a", api.MeterVCPU, 9000), useAt(october, "b", api.MeterVCPU, 9000)}, dear, api.CodeTooLarge},
	} {
		r, err := NewRating("org-1", pricebook.Always(c.book), Whole(october, november))
		for _, u := range c.use {
			if err == nil {
				err = r.Add(u)
			}
		}
		if err == nil {
			_, err = r.Invoice()
		}
		if err == nil || api.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	for name, spec := range map[string]api.PriceBookSpec{"backwards": pricebook.Default(), "no price": {Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU}}}} {
		from, to := october, november
		if name == "backwards" {
			from, to = to, from
		}
		if _, err := NewRating("org-1", pricebook.Always(spec), Whole(from, to)); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("NewRating with %s: %v, want %s", name, err, api.CodeInvalid)
		}
	}
}

// TestQuantityBeyondInt64 checks a volume of some TiB, whose byte-seconds in a month
// exceed an int64.
func TestQuantityBeyondInt64(t *testing.T) {
	var all []api.Use
	exact := new(big.Int)
	for h := range 720 {
		q := int64(64)<<40*3600 + 1 // 64 TiB for an hour
		all = append(all, useAt(october.Add(time.Duration(h)*time.Hour), "vol-1", api.MeterVolume, q))
		exact.Add(exact, big.NewInt(q))
	}
	p := invoice(t, pricebook.Default(), october, november, all)
	// The amount is that of 65536 GiB months at 5 cents; 720 byte-seconds more do not
	// show.
	if len(p.Lines) != 1 || p.Lines[0].Quantity.Int().Cmp(exact) != 0 || p.TotalMicros != 65536*5*cent {
		t.Errorf("invoice = %+v, want one line with quantity %s and a total of %d", p, exact, 65536*5*cent)
	}
}

// metered returns random usage of an organization in two months, recorded with the
// meter, and the expected sums.
func metered(random *rand.Rand) (records []api.UsageRecord, used map[api.Meter]*big.Int) {
	used = map[api.Meter]*big.Int{}
	for i := range 4 {
		r := meter.Resource{ID: fmt.Sprintf("ins-%d", i), Name: fmt.Sprint("vm", i), Organization: "org-1", Project: fmt.Sprintf("prj-%d", i%3)}
		var s meter.State
		var gpu uint64
		now := october
		rates := meter.Rates{api.MeterVCPU: 1 + random.Uint64N(64), api.MeterMemory: random.Uint64N(1 << 40)}
		for now.Before(december) {
			o := meter.Observation{At: now, Watched: true, Rates: rates, Totals: &meter.Totals{GPUNanos: gpu, Launches: gpu / 7}}
			if random.IntN(3) > 0 {
				o.Run = "run"
			}
			var cmds []api.Command
			s, cmds = meter.Advance(r, s, o)
			for _, c := range cmds {
				o, err := api.RecordOf(c, now)
				if err != nil {
					panic("the meter made what is no use")
				}
				records = append(records, o)
				u, _ := api.UseOf(o)
				if used[u.Meter] == nil {
					used[u.Meter] = new(big.Int)
				}
				used[u.Meter].Add(used[u.Meter], big.NewInt(u.Quantity))
			}
			gpu += random.Uint64N(1e13)
			now = now.Add(time.Duration(random.Int64N(int64(40 * time.Hour))))
		}
	}
	return records, used
}

// TestInvoicesAreDeterministic checks that the same records in any order, any
// number of times, give the same invoices; that each recorded unit is charged in
// exactly one of the two months; and that the total is the sum of the lines.
func TestInvoicesAreDeterministic(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 0))
	book := pricebook.Default()
	book.Prices[0].Tiers = []api.PriceTier{{UpTo: 10}, {UpTo: 1000, PriceMicros: 12_345}}
	book.Discounts = []api.Discount{{BasisPoints: 333, From: october.Add(100 * time.Hour)}}
	for range 4 {
		records, used := metered(random)
		shuffled := slices.Concat(records, records[:len(records)/2])
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		books := ledger.NewLedger(book.Currency)
		charged := map[api.Meter]*big.Int{}
		var total int64
		for _, month := range []time.Time{october, november} {
			inv := invoice(t, book, month, month.AddDate(0, 1, 0), rollUp(records), vat)
			replay := invoice(t, book, month, month.AddDate(0, 1, 0), rollUp(shuffled), vat)
			if d := cmp.Diff(inv, replay); d != "" {
				t.Fatalf("invoice of shuffled and repeated records: mismatch (-want +got):\n%s", d)
			}
			sum := int64(0)
			for _, l := range inv.Lines {
				sum += l.AmountMicros
				if l.Kind == api.LineUsage {
					if charged[l.Meter] == nil {
						charged[l.Meter] = new(big.Int)
					}
					charged[l.Meter].Add(charged[l.Meter], l.Quantity.Int())
				}
			}
			if total += sum; sum != inv.TotalMicros {
				t.Errorf("sum of the lines = %d, want the total %d", sum, inv.TotalMicros)
			}
			for _, tx := range []ledger.Transaction{ledger.OfInvoice(issued(inv)), ledger.OfInvoice(issued(replay))} {
				if err := books.Post(tx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if d := cmp.Diff(used, charged, cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); d != "" {
			t.Errorf("charged quantities differ from the used ones (-want +got):\n%s", d)
		}
		if owed := books.Balance(ledger.Receivable("org-1")); owed != total || total == 0 {
			t.Errorf("balance owed = %d, want the invoiced %d", owed, total)
		}
	}
}

// TestEveryValidSpecIsABook checks that package tariff accepts every price book that
// the API accepts.
func TestEveryValidSpecIsABook(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	valid := 0
	for range 20_000 {
		n := func(most int64) int64 { return random.Int64N(most+2) - 1 }
		when := func() time.Time {
			return []time.Time{{}, october, october.Add(time.Minute), november}[min(3, random.IntN(12))]
		}
		s := api.PriceBookSpec{Currency: []string{"EUR", "EUR", "EUR", "euro"}[random.IntN(4)], MinimumMicros: n(5)}
		m := func() api.Meter { return []api.Meter{api.MeterGPU, api.MeterVCPU, "", "x"}[min(3, random.IntN(9)/2)] }
		for range random.IntN(3) {
			p := api.Price{Meter: m(), From: when(), Per: n(9), PriceMicros: n(9)}
			for range random.IntN(3) {
				p.Tiers = append(p.Tiers, api.PriceTier{UpTo: n(9), PriceMicros: n(9)})
			}
			s.Prices = append(s.Prices, p)
		}
		if random.IntN(3) == 0 {
			s.Commitments = append(s.Commitments, api.Commitment{Meter: m(), Quantity: n(9), Per: n(9), PriceMicros: n(9), From: when(), Until: when()})
		}
		if random.IntN(3) == 0 {
			s.Discounts = append(s.Discounts, api.Discount{BasisPoints: n(whole), From: when(), Until: when()})
		}
		if api.ValidatePriceBook(s) != nil {
			continue
		}
		valid++
		book, err := pricebook.Always(s).Tariff(pricebook.Whole(october, november))
		if err == nil {
			err = book.Validate()
		}
		if err != nil {
			t.Fatalf("valid spec %+v: %v", s, err)
		}
	}
	if valid < 100 {
		t.Errorf("%d specs were valid, want at least 100", valid)
	}
}

const whole = 10_000
