package billing

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/meter"
)

var (
	october  = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	november = october.AddDate(0, 1, 0)
	december = october.AddDate(0, 2, 0)
)

func record(id, org, resource string, m api.Meter, end time.Time, quantity int64) api.UsageRecord {
	return api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: id, Organization: org, Project: "prj-" + org},
		Spec: api.UsageRecordSpec{Meter: m, Resource: resource, ResourceName: "name of " + resource,
			Start: end.Add(-time.Minute), End: end, Quantity: quantity}}
}

func TestPreview(t *testing.T) {
	at := october.Add(time.Hour)
	records := []api.UsageRecord{
		record("use-1", "org-1", "ins-1", api.MeterVCPU, at, 3600),
		record("use-2", "org-1", "ins-1", api.MeterVCPU, at.Add(time.Hour), 3600),
		record("use-3", "org-1", "ins-1", api.MeterGPU, at, gpuHour/2),
		record("use-4", "org-1", "ins-0", api.MeterLaunch, at, 12345),
		record("use-5", "org-2", "ins-2", api.MeterVCPU, at, 3600),       // another's
		record("use-6", "org-1", "ins-1", api.MeterVCPU, november, 1800), // the last of October
		record("use-7", "org-1", "ins-1", api.MeterVCPU, november.Add(1), 1800),
		record("use-8", "org-1", "ins-1", api.MeterVCPU, october, 1800),
	}
	inv, err := Preview("org-1", records, DefaultPriceBook(), october, november)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		resource         string
		meter            api.Meter
		quantity, amount int64
		records          []string
	}
	var got []line
	for _, l := range inv.Lines {
		got = append(got, line{l.Resource, l.Price.Meter, l.Quantity, l.AmountMicros, l.Records})
	}
	want := []line{
		{"ins-0", api.MeterLaunch, 12345, 0, []string{"use-4"}},
		{"ins-1", api.MeterGPU, gpuHour / 2, 900_000, []string{"use-3"}},
		{"ins-1", api.MeterVCPU, 9000, 25_000, []string{"use-1", "use-2", "use-6"}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(line{})); d != "" || inv.TotalMicros != 925_000 {
		t.Errorf("total %d, %s", inv.TotalMicros, d)
	}
	p := inv.API()
	if p.Organization != "org-1" || p.Currency != "EUR" || len(p.Lines) != 3 || p.TotalMicros != 925_000 ||
		p.Lines[2].Unit != "vCPU hour" || p.Lines[2].Project != "prj-org-1" || p.Lines[2].ResourceName != "name of ins-1" {
		t.Errorf("%+v", p)
	}
}

func TestDefaultPriceBookPricesEverything(t *testing.T) {
	book := DefaultPriceBook()
	if err := api.ValidatePriceBook(book); err != nil {
		t.Fatal(err)
	}
	for _, m := range api.Meters() {
		if !slices.ContainsFunc(book.Prices, func(p api.Price) bool { return p.Meter == m }) {
			t.Errorf("%s has no price", m)
		}
	}
}

func TestRefused(t *testing.T) {
	at := october.Add(time.Hour)
	negative := record("use-1", "org-1", "ins-1", api.MeterVCPU, at, -1)
	backwards := record("use-1", "org-1", "ins-1", api.MeterVCPU, at, 1)
	backwards.Spec.Start = at.Add(1)
	good := record("use-1", "org-1", "ins-1", api.MeterVCPU, at, 1)
	other := record("use-1", "org-1", "ins-1", api.MeterVCPU, at, 2)
	dear := api.PriceBookSpec{Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: math.MaxInt64, Per: 1}}}
	for name, c := range map[string]struct {
		records []api.UsageRecord
		book    api.PriceBookSpec
		code    api.Code
	}{
		"negative":     {[]api.UsageRecord{negative}, DefaultPriceBook(), api.CodeInvalid},
		"backwards":    {[]api.UsageRecord{backwards}, DefaultPriceBook(), api.CodeInvalid},
		"two versions": {[]api.UsageRecord{good, other}, DefaultPriceBook(), api.CodeInvalid},
		"no price":     {[]api.UsageRecord{good}, api.PriceBookSpec{}, api.CodeState},
		"bad price":    {[]api.UsageRecord{good}, api.PriceBookSpec{Prices: []api.Price{{Meter: api.MeterVCPU}}}, api.CodeInvalid},
		"line":         {[]api.UsageRecord{other}, dear, api.CodeTooLarge},
		"total":        {[]api.UsageRecord{good, record("use-2", "org-1", "ins-2", api.MeterVCPU, at, 1)}, dear, api.CodeTooLarge},
	} {
		if _, err := Preview("org-1", c.records, c.book, october, november); api.CodeOf(err) != c.code || err == nil {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if _, err := Preview("org-1", nil, DefaultPriceBook(), november, october); api.CodeOf(err) != api.CodeInvalid {
		t.Error(err)
	}
}

// A volume of some TiB uses more byte-seconds in a month than an int64 holds.
func TestQuantityBeyondInt64(t *testing.T) {
	var records []api.UsageRecord
	exact := new(big.Int)
	for i := range 720 {
		q := int64(64) << 40 * 3600 // 64 TiB for an hour
		records = append(records, record(fmt.Sprintf("use-%d", i), "org-1", "vol-1", api.MeterVolume, october.Add(time.Duration(i+1)*time.Hour), q+1))
		exact.Add(exact, big.NewInt(q+1))
	}
	inv, err := Preview("org-1", records, DefaultPriceBook(), october, november)
	if err != nil {
		t.Fatal(err)
	}
	lines, total := new(big.Int), inv.TotalMicros
	for _, l := range inv.Lines {
		lines.Add(lines, big.NewInt(l.Quantity))
	}
	// 65536 GiB months at 5 cents, and 720 byte-seconds that are too little to show.
	if lines.Cmp(exact) != 0 || len(inv.Lines) < 2 || total != 65536*5*cent {
		t.Errorf("%d lines of together %s (want %s), %d micros", len(inv.Lines), lines, exact, total)
	}
}

// oracle is the amount by rationals, half up.
func oracle(quantity *big.Int, price, per int64) *big.Int {
	n := new(big.Int).Mul(quantity, big.NewInt(2*price))
	n.Add(n, big.NewInt(per))
	return n.Div(n, new(big.Int).Mul(big.NewInt(2), big.NewInt(per)))
}

func FuzzAmount(f *testing.F) {
	for _, s := range [][3]int64{{0, 0, 1}, {1, 1, 2}, {1, 1, 3}, {2, 1, 3}, {math.MaxInt64, math.MaxInt64, math.MaxInt64}, {math.MaxInt64, 2, 1}, {math.MaxInt64, math.MaxInt64, 1}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, q, price, per int64) {
		if q < 0 || price < 0 || per < 1 {
			return
		}
		n := new(big.Int).Mul(big.NewInt(q), big.NewInt(price))
		n.Mul(n, big.NewInt(2)).Add(n, big.NewInt(per)).Div(n, new(big.Int).Mul(big.NewInt(2), big.NewInt(per)))
		got, err := amount(q, price, per)
		if (err != nil) != !n.IsInt64() || (err == nil && n.Int64() != got) {
			t.Errorf("%d × %d / %d = %d (%v), want %s", q, price, per, got, err, n)
		}
	})
}

// usage is what random tenants used in two months, by way of the meter, with
// what it must come to.
func usage(random *rand.Rand) (records []api.UsageRecord, used map[string]map[api.Meter]*big.Int) {
	used = map[string]map[api.Meter]*big.Int{}
	for i := range 6 {
		r := meter.Resource{ID: fmt.Sprintf("ins-%d", i), Name: fmt.Sprint("vm", i), Organization: fmt.Sprintf("org-%d", i%3), Project: fmt.Sprintf("prj-%d", i%4)}
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
				u, err := api.Decode[api.UsageRecord](api.Object{Kind: c.Kind, Spec: c.Data,
					Meta: api.Meta{ID: c.ID, Organization: c.Organization, Project: c.Project}})
				if err != nil {
					panic(err)
				}
				records = append(records, u)
				of := used[c.Organization]
				if of == nil {
					of = map[api.Meter]*big.Int{}
					used[c.Organization] = of
				}
				if of[u.Spec.Meter] == nil {
					of[u.Spec.Meter] = new(big.Int)
				}
				of[u.Spec.Meter].Add(of[u.Spec.Meter], big.NewInt(u.Spec.Quantity))
			}
			gpu += random.Uint64N(1e13)
			now = now.Add(time.Duration(random.Int64N(int64(40 * time.Hour))))
		}
	}
	return records, used
}

// The same records in any order, any number of times, make the same invoices;
// what the tenants are charged for is what the meter recorded, each record in
// one of the two months; and every amount is the exact one, rounded once.
func TestInvoicesAreAFunctionOfTheRecords(t *testing.T) {
	const seed = 11
	random := rand.New(rand.NewPCG(seed, 0))
	book := DefaultPriceBook()
	for range 10 {
		records, used := usage(random)
		shuffled := slices.Concat(records, records[:len(records)/2])
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		ledger, again := NewLedger(book.Currency), NewLedger(book.Currency)
		var total int64
		for org, of := range used {
			charged := map[api.Meter]*big.Int{}
			for _, month := range []time.Time{october, november} {
				// The very first instant of October has no use that ended after it.
				inv, err := Preview(api.OrganizationID(org), records, book, month, month.AddDate(0, 1, 0))
				if err != nil {
					t.Fatal(err)
				}
				replay, err := Preview(api.OrganizationID(org), shuffled, book, month, month.AddDate(0, 1, 0))
				if d := cmp.Diff(inv, replay); d != "" || err != nil {
					t.Fatal(d, err)
				}
				total += inv.TotalMicros
				quantities := map[group]*big.Int{}
				amounts := map[group]int64{}
				for _, l := range inv.Lines {
					g := group{l.Organization, l.Project, l.Resource, l.Price.Meter}
					for _, sums := range []*big.Int{at(charged, l.Price.Meter), at(quantities, g)} {
						sums.Add(sums, big.NewInt(l.Quantity))
					}
					amounts[g] += l.AmountMicros
				}
				for _, p := range book.Prices {
					for g, q := range quantities {
						if want := oracle(q, p.PriceMicros, p.Per); g.meter == p.Meter && want.Int64() != amounts[g] {
							t.Errorf("%v: %d micros, want %s", g, amounts[g], want)
						}
					}
				}
				for _, tx := range []Transaction{inv.Transact(), replay.Transact()} {
					if err := ledger.Post(tx); err != nil {
						t.Fatal(err)
					}
				}
				if err := again.Post(replay.Transact()); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(of, charged, cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); d != "" {
				t.Errorf("%s is not charged for what it used: %s", org, d)
			}
		}
		var owed, all int64
		for _, a := range ledger.Accounts() {
			all += ledger.Balance(a)
			if a[:3] == "rec" {
				owed += ledger.Balance(a)
			}
			if ledger.Balance(a) != again.Balance(a) {
				t.Errorf("%s: %d, replayed %d", a, ledger.Balance(a), again.Balance(a))
			}
		}
		if owed != total || all != 0 || total == 0 {
			t.Errorf("owed %d, invoiced %d, sum of all accounts %d", owed, total, all)
		}
	}
}

func at[K comparable](m map[K]*big.Int, k K) *big.Int {
	if m[k] == nil {
		m[k] = new(big.Int)
	}
	return m[k]
}

func TestLedgerRefuses(t *testing.T) {
	l := NewLedger("EUR")
	good := Transaction{ID: "txn-1", Currency: "EUR", Entries: []Entry{{Receivable("org-1"), Revenue(api.MeterGPU), 5}}}
	if err := l.Post(good); err != nil {
		t.Fatal(err)
	}
	changed := good
	changed.Entries = []Entry{{Receivable("org-1"), Revenue(api.MeterGPU), 6}}
	for name, c := range map[string]struct {
		tx   Transaction
		code api.Code
	}{
		"changed":  {changed, api.CodeConflict},
		"currency": {Transaction{ID: "txn-2", Currency: "USD"}, api.CodeInvalid},
		"no id":    {Transaction{Currency: "EUR"}, api.CodeInvalid},
		"negative": {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "b", 1}, {"a", "b", -1}}}, api.CodeInvalid},
		"itself":   {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "a", 1}}}, api.CodeInvalid},
		"overflow": {Transaction{ID: "txn-2", Currency: "EUR", Entries: []Entry{{"a", "b", math.MaxInt64}, {"a", "c", 1}}}, api.CodeTooLarge},
	} {
		if err := l.Post(c.tx); err == nil || api.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := l.Accounts(); !slices.Equal(got, []Account{"receivable/org-1", "revenue/gpu-nanoseconds"}) || l.Balance("receivable/org-1") != 5 {
		t.Errorf("%v", got)
	}
}
