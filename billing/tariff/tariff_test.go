package tariff

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

var (
	may  = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	june = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
)

func flat(m api.Meter, micros, per int64) Rate {
	return Rate{Meter: m, Per: per, Tiers: []Tier{{PriceMicros: micros}}}
}

func use(hour int, resource string, m api.Meter, q int64) api.Use {
	return api.Use{Hour: may.Add(time.Duration(hour) * time.Hour), Project: "p", Resource: resource, Meter: m, Quantity: q}
}

func statement(t *testing.T, b Book, all ...api.Use) Statement {
	t.Helper()
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	r := NewRater(b)
	for _, u := range all {
		if err := r.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	st, err := r.Statement(may, june)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (st Statement) text() string {
	var b strings.Builder
	for _, c := range st.Charges {
		fmt.Fprintf(&b, "%s %s rate %d tier %d: %s at %d/%d = %d - %d\n", c.Resource, c.Meter, c.Rate, c.Tier, c.Quantity, c.PriceMicros, c.Per, c.AmountMicros, c.OffMicros)
	}
	for _, f := range st.Fees {
		fmt.Fprintf(&b, "committed %s: %d\n", f.Meter, f.FeeMicros)
	}
	fmt.Fprintf(&b, "top-up %d, subtotal %d", st.TopUpMicros, st.SubtotalMicros)
	for _, l := range st.Taxes {
		fmt.Fprintf(&b, ", %s %d", l.Name, l.AmountMicros)
	}
	fmt.Fprintf(&b, ", total %d", st.TotalMicros)
	return b.String()
}

func TestStatement(t *testing.T) {
	const m = api.MeterVCPU
	for name, c := range map[string]struct {
		book Book
		use  []api.Use
		want string
	}{
		"nothing": {book: Book{Currency: "EUR"}, want: "top-up 0, subtotal 0, total 0"},
		"one price, rounded once a resource": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 1, 2)}},
			use:  []api.Use{use(0, "a", m, 1), use(0, "b", m, 1), use(1, "a", m, 2)},
			want: "a vcpu-seconds rate 0 tier 0: 3 at 1/2 = 2 - 0\nb vcpu-seconds rate 0 tier 0: 1 at 1/2 = 1 - 0\ntop-up 0, subtotal 3, total 3",
		},
		"included, then cheaper the more": {
			book: Book{Currency: "EUR", Rates: []Rate{{Meter: m, Per: 10, Tiers: []Tier{{UpTo: 1}, {UpTo: 3, PriceMicros: 100}, {PriceMicros: 50}}}}},
			use:  []api.Use{use(0, "a", m, 15), use(0, "b", m, 10), use(1, "a", m, 15)},
			want: `a vcpu-seconds rate 0 tier 0: 10 at 0/10 = 0 - 0
a vcpu-seconds rate 0 tier 1: 10 at 100/10 = 100 - 0
a vcpu-seconds rate 0 tier 2: 10 at 50/10 = 50 - 0
b vcpu-seconds rate 0 tier 1: 10 at 100/10 = 100 - 0
top-up 0, subtotal 250, total 250`,
		},
		"another price from the second hour": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 1, 1), {Meter: m, From: may.Add(time.Hour), Per: 1, Tiers: []Tier{{PriceMicros: 3}}}}},
			use:  []api.Use{use(0, "a", m, 1), use(1, "a", m, 1), use(2, "a", m, 1)},
			want: "a vcpu-seconds rate 0 tier 0: 1 at 1/1 = 1 - 0\na vcpu-seconds rate 1 tier 0: 2 at 3/1 = 6 - 0\ntop-up 0, subtotal 7, total 7",
		},
		"a commitment is paid whether it is used or not": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 100, 1)}, Commitments: []Commitment{{Meter: m, Quantity: api.Units(3), Per: 1, PriceMicros: 60, FeeMicros: 180}}},
			use:  []api.Use{use(0, "a", m, 2), use(1, "b", m, 2)},
			want: `a vcpu-seconds rate 0 tier -1: 2 at 0/1 = 0 - 0
b vcpu-seconds rate 0 tier -1: 1 at 0/1 = 0 - 0
b vcpu-seconds rate 0 tier 0: 1 at 100/1 = 100 - 0
committed vcpu-seconds: 180
top-up 0, subtotal 280, total 280`,
		},
		"the larger discount, in its hours": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 10, 1)}, Discounts: []Discount{{BasisPoints: 1000}, {Meters: []api.Meter{m}, BasisPoints: 5000, From: may.Add(time.Hour), Until: may.Add(2 * time.Hour)}}},
			use:  []api.Use{use(0, "a", m, 1), use(1, "a", m, 1), use(2, "a", m, 1)},
			want: "a vcpu-seconds rate 0 tier 0: 2 at 10/1 = 20 - 2\na vcpu-seconds rate 0 tier 0: 1 at 10/1 = 10 - 5\ntop-up 0, subtotal 23, total 23",
		},
		"a minimum, and taxes on it": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 1, 1)}, MinimumMicros: 1000, Taxes: []Tax{{Name: "VAT", BasisPoints: 1900}, {Name: "city", BasisPoints: 50}}},
			use:  []api.Use{use(0, "a", m, 1)},
			want: "a vcpu-seconds rate 0 tier 0: 1 at 1/1 = 1 - 0\ntop-up 999, subtotal 1000, VAT 190, city 5, total 1195",
		},
		"more byte-seconds than an int64 has": {
			book: Book{Currency: "EUR", Rates: []Rate{flat(m, 5, 1<<62)}},
			use:  []api.Use{use(0, "a", m, 1<<62), use(1, "a", m, 1<<62), use(2, "a", m, 1<<62)},
			want: "a vcpu-seconds rate 0 tier 0: 13835058055282163712 at 5/4611686018427387904 = 15 - 0\ntop-up 0, subtotal 15, total 15",
		},
	} {
		if got := statement(t, c.book, c.use...).text(); got != c.want {
			t.Errorf("%s: statement:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const m = api.MeterVCPU
	for name, c := range map[string]struct {
		use  []api.Use
		code api.Code
	}{
		"no price":     {[]api.Use{use(0, "a", api.MeterGPU, 1)}, api.CodeState},
		"negative":     {[]api.Use{use(0, "a", m, -1)}, api.CodeInvalid},
		"in the hour":  {[]api.Use{{Hour: may.Add(time.Minute), Resource: "a", Meter: m, Quantity: 1}}, api.CodeInvalid},
		"twice":        {[]api.Use{use(0, "a", m, 1), use(0, "a", m, 1)}, api.CodeInvalid},
		"out of order": {[]api.Use{use(1, "a", m, 1), use(0, "a", m, 1)}, api.CodeInvalid},
	} {
		r, err := NewRater(Book{Currency: "EUR", Rates: []Rate{flat(m, 1, 1)}}), error(nil)
		for _, u := range c.use {
			err = errors.Join(err, r.Add(u))
		}
		if api.CodeOf(err) != c.code {
			t.Errorf("%s: error %v, want %s", name, err, c.code)
		}
	}
	r := NewRater(Book{Currency: "EUR", Rates: []Rate{flat(m, maxMicros, 1)}})
	if err := r.Add(use(0, "a", m, 1<<62)); err != nil {
		t.Fatal(err)
	}
	if st, err := r.Statement(may, june); api.CodeOf(err) != api.CodeTooLarge {
		t.Errorf("statement that overflows = %+v, error %v; want %s", st, err, api.CodeTooLarge)
	}
}

func TestValidate(t *testing.T) {
	const m = api.MeterVCPU
	ok := Book{Currency: "EUR", Rates: []Rate{flat(m, 1, 1)}}
	for name, change := range map[string]func(*Book){
		"currency":          func(b *Book) { b.Currency = "euro" },
		"no tiers":          func(b *Book) { b.Rates = []Rate{{Meter: m, Per: 1}} },
		"no meter":          func(b *Book) { b.Rates = []Rate{flat("", 1, 1)} },
		"per nothing":       func(b *Book) { b.Rates = []Rate{flat(m, 1, 0)} },
		"negative":          func(b *Book) { b.Rates = []Rate{flat(m, -1, 1)} },
		"absurd":            func(b *Book) { b.Rates = []Rate{flat(m, maxMicros+1, 1)} },
		"two at a time":     func(b *Book) { b.Rates = append(b.Rates, b.Rates[0]) },
		"half past":         func(b *Book) { b.Rates[0].From = may.Add(30 * time.Minute) },
		"last tier ends":    func(b *Book) { b.Rates[0].Tiers = []Tier{{UpTo: 5}} },
		"tier in between":   func(b *Book) { b.Rates[0].Tiers = []Tier{{}, {}} },
		"tiers backwards":   func(b *Book) { b.Rates[0].Tiers = []Tier{{UpTo: 5}, {UpTo: 5}, {}} },
		"no commitment":     func(b *Book) { b.Commitments = []Commitment{{Meter: m}} },
		"discount too much": func(b *Book) { b.Discounts = []Discount{{BasisPoints: whole + 1}} },
		"discount never":    func(b *Book) { b.Discounts = []Discount{{BasisPoints: 1, From: june, Until: may}} },
		"tax":               func(b *Book) { b.Taxes = []Tax{{Name: "", BasisPoints: 1}} },
		"minimum":           func(b *Book) { b.MinimumMicros = -1 },
	} {
		b := ok
		b.Rates = slices.Clone(ok.Rates)
		change(&b)
		if err := b.Validate(); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("Validate of a book with %s: %v, want %s", name, err, api.CodeInvalid)
		}
	}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}

// TestEveryUnitIsChargedOnce checks, for random usage, that every unit is in exactly
// one charge, that amounts match rational arithmetic, that the pieces add up to the
// charges, and that the total is their sum.
func TestEveryUnitIsChargedOnce(t *testing.T) {
	meters := []api.Meter{api.MeterVCPU, api.MeterGPU}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := randomBook(rng, meters)
		if err := b.Validate(); err != nil {
			t.Fatal(err)
		}
		r := NewRater(b)
		pieces := map[Key]api.Quantity{}
		r.Piece = func(p Piece) { pieces[p.Key] = pieces[p.Key].Plus(p.Quantity) }
		used := map[string]*big.Int{}
		for hour := range 6 {
			for _, m := range slices.Sorted(slices.Values(meters)) {
				for _, res := range []string{"a", "b", "c"} {
					u := use(hour, res, m, rng.Int64N(40)*rng.Int64N(2))
					if err := r.Add(u); err != nil {
						t.Fatal(err)
					}
					k := string(m) + res
					if used[k] == nil {
						used[k] = new(big.Int)
					}
					used[k].Add(used[k], big.NewInt(u.Quantity))
				}
			}
		}
		st, err := r.Statement(may, june)
		if err != nil {
			t.Fatal(err)
		}
		var subtotal int64
		for _, c := range st.Charges {
			if pieces[c.Key] != c.Quantity {
				t.Fatalf("seed %d: pieces of %+v add up to %s", seed, c, pieces[c.Key])
			}
			used[string(c.Meter)+c.Resource].Sub(used[string(c.Meter)+c.Resource], c.Quantity.Int())
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(c.Quantity.Int(), big.NewInt(c.PriceMicros)), big.NewInt(c.Per))
			off := new(big.Rat).Sub(exact, new(big.Rat).SetInt64(c.AmountMicros))
			if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
				t.Fatalf("seed %d: amount of %+v is off by %s, want at most half a micro", seed, c, off)
			}
			subtotal += c.AmountMicros - c.OffMicros
		}
		for k, left := range used {
			if left.Sign() != 0 {
				t.Fatalf("seed %d: %s units of %s are in no charge, or in two", seed, left, k)
			}
		}
		for _, f := range st.Fees {
			subtotal += f.FeeMicros
		}
		if subtotal += st.TopUpMicros; subtotal != st.SubtotalMicros || subtotal < b.MinimumMicros {
			t.Fatalf("seed %d: sum of the parts = %d, want the subtotal %d", seed, subtotal, st.SubtotalMicros)
		}
		tiersAreFilled(t, b, st)
	}
}

// tiersAreFilled checks that no tier contains more than its size, and that none begins
// before the one below is full. After a change of rates within the period only the
// first is checked.
func tiersAreFilled(t *testing.T, b Book, st Statement) {
	t.Helper()
	type tier struct{ rate, tier int }
	in := map[tier]api.Quantity{}
	for _, c := range st.Charges {
		if c.Tier != Committed {
			k := tier{c.Rate, c.Tier}
			in[k] = in[k].Plus(c.Quantity)
		}
	}
	for k, q := range in {
		r := b.Rates[k.rate]
		room := api.Units(0)
		for i := range k.tier + 1 {
			if r.Tiers[i].UpTo > 0 {
				room = api.Product(r.Tiers[i].UpTo, r.Per)
			}
		}
		if r.Tiers[k.tier].UpTo > 0 && room.Less(q) {
			t.Fatalf("tier %d of rate %d contains %s, want at most %s", k.tier, k.rate, q, room)
		}
	}
}

func randomBook(rng *rand.Rand, meters []api.Meter) Book {
	b := Book{Currency: "EUR", MinimumMicros: rng.Int64N(2) * rng.Int64N(5000)}
	for _, m := range meters {
		for v := range 1 + rng.IntN(3) {
			r := Rate{Meter: m, Per: 1 + rng.Int64N(20)}
			if v > 0 {
				r.From = may.Add(time.Duration(2*v) * time.Hour)
			}
			upTo := int64(0)
			for range rng.IntN(3) {
				upTo += 1 + rng.Int64N(5)
				r.Tiers = append(r.Tiers, Tier{UpTo: upTo, PriceMicros: rng.Int64N(100)})
			}
			r.Tiers = append(r.Tiers, Tier{PriceMicros: rng.Int64N(100)})
			b.Rates = append(b.Rates, r)
		}
		if rng.IntN(2) == 0 {
			b.Commitments = append(b.Commitments, Commitment{Meter: m, Quantity: api.Units(1 + rng.Int64N(25)), Per: 1 + rng.Int64N(5), PriceMicros: rng.Int64N(50), FeeMicros: rng.Int64N(250)})
		}
		if rng.IntN(2) == 0 {
			b.Discounts = append(b.Discounts, Discount{Meters: []api.Meter{m}, BasisPoints: 1 + rng.Int64N(whole), From: may.Add(time.Hour), Until: may.Add(4 * time.Hour)})
		}
	}
	return b
}

// BenchmarkMonth rates a month of a thousand instances with three meters each.
func BenchmarkMonth(b *testing.B) {
	const instances, hours = 1000, 720
	meters := []api.Meter{api.MeterGPU, api.MeterMemory, api.MeterVCPU}
	book := Book{Currency: "EUR"}
	for _, m := range meters {
		book.Rates = append(book.Rates, Rate{Meter: m, Per: 3600, Tiers: []Tier{{UpTo: 1000}, {UpTo: 100_000, PriceMicros: 10_000}, {PriceMicros: 8000}}})
	}
	names := make([]string, instances)
	for i := range names {
		names[i] = fmt.Sprintf("ins-%012d", i)
	}
	for b.Loop() {
		r := NewRater(book)
		for h := range hours {
			at := may.Add(time.Duration(h) * time.Hour)
			for _, m := range slices.Sorted(slices.Values(meters)) {
				for _, n := range names {
					if err := r.Add(api.Use{Hour: at, Project: "prj-1", Resource: n, Meter: m, Quantity: 3600}); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		if _, err := r.Statement(may, june); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(instances*hours*float64(len(meters))), "ns/use")
}
