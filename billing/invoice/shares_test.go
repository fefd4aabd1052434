package invoice

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// TestTheMostSpecificPriceCounts checks that a price for a GPU model, pool, storage
// pool or flavor takes precedence over the general one, and one with more attributes
// over one with fewer.
func TestTheMostSpecificPriceCounts(t *testing.T) {
	price := func(micros int64, where api.PriceSelector) api.Price {
		return api.Price{Meter: api.MeterGPU, PriceMicros: micros, Per: gpuHour, Where: where}
	}
	book := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{
		price(1, api.PriceSelector{}), price(10, api.PriceSelector{Pool: "a"}), price(100, api.PriceSelector{Model: "L4"}),
		price(1000, api.PriceSelector{Model: "L4", Pool: "a"}), price(10_000, api.PriceSelector{Flavor: "flv-1"}),
	}}
	if err := api.ValidatePriceBook(book); err != nil {
		t.Fatal(err)
	}
	for used, want := range map[api.PriceSelector]int64{
		{}: 1, {Model: "H100"}: 1, {Model: "H100", Pool: "a"}: 10, {Model: "L4"}: 100, {Model: "L4", Pool: "b"}: 100,
		{Model: "L4", Pool: "a"}: 1000, {Model: "L4", Pool: "a", Flavor: "flv-1"}: 1000, // one with more attributes
		{Flavor: "flv-1"}: 10_000, {Pool: "a", Flavor: "flv-1"}: 10, {Model: "L4", Flavor: "flv-1"}: 100, // of equally many, the first attribute
	} {
		for range 3 {
			rand.Shuffle(len(book.Prices), func(i, j int) { book.Prices[i], book.Prices[j] = book.Prices[j], book.Prices[i] })
			u := useAt(october, "ins-1", api.MeterGPU, gpuHour)
			u.Attributes = used
			p := invoice(t, book, october, november, []api.Use{u})
			if p.TotalMicros != want || len(p.Lines) != 1 || !p.Lines[0].Where.Matches(used) {
				t.Errorf("an hour of %q costs %d with lines %+v, want %d", used, p.TotalMicros, p.Lines, want)
			}
		}
	}
	// Two prices with the same attributes are refused; a meter with prices only for
	// other GPUs has none.
	book.Prices = append(book.Prices, price(5, api.PriceSelector{Pool: "a"}))
	if err := api.ValidatePriceBook(book); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("two prices of the same pool: %v, want %s", err, api.CodeInvalid)
	}
	r, err := NewRating("org-1", pricebook.Always(api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{price(1, api.PriceSelector{Model: "L4"})}}), Whole(october, november))
	if err != nil {
		t.Fatal(err)
	}
	u := useAt(october, "ins-1", api.MeterGPU, 1)
	u.Attributes.Model = "H100"
	if err := r.Add(u); api.CodeOf(err) != api.CodeState {
		t.Errorf("usage of a GPU without a price: %v, want %s", err, api.CodeState)
	}
}

// TestReservedShares checks that a reserved share is charged whether it is used or not,
// that GPU time within it is not charged again, and that time beyond it is. Without a
// price for the share, all time is charged.
func TestReservedShares(t *testing.T) {
	of := api.PriceSelector{Model: "L4", Pool: "default"}
	hourOf := func(share, percent int64, tier api.GPUTier) []api.Use {
		var all []api.Use
		if percent > 0 {
			u := useAt(october, "ins-1", api.TierMeter(tier), gpuHour/100*percent)
			u.Attributes = of
			all = append(all, u)
		}
		if share > 0 {
			u := useAt(october, "ins-1", api.MeterGPUShare, share*3600)
			u.Attributes = of
			u.Attributes.Tier = string(tier)
			all = append(all, u)
		}
		return all
	}
	book := pricebook.Default()
	old := pricebook.Default()
	old.Prices = slices.DeleteFunc(old.Prices, func(p api.Price) bool { return p.Meter == api.MeterGPUShare })
	for _, c := range []struct {
		share, percent int64
		tier           api.GPUTier
		want, before   int64 // in cents
	}{
		{0, 0, api.TierStandard, 0, 0},
		{100, 0, api.TierStandard, 180, 0}, // idle: M1
		{100, 100, api.TierStandard, 180, 180},
		{50, 20, api.TierStandard, 90, 36},
		{50, 50, api.TierStandard, 90, 90},
		{50, 100, api.TierStandard, 180, 180},
		{0, 70, api.TierStandard, 126, 126},
		{40, 100, api.TierPremium, 270, 270},
		{10, 0, api.TierBasic, 9, 0},
	} {
		for name, b := range map[string]struct {
			book api.PriceBookSpec
			want int64
		}{"with": {book, c.want}, "without": {old, c.before}} {
			if got := invoice(t, b.book, october, november, hourOf(c.share, c.percent, c.tier)).TotalMicros; got != b.want*cent {
				t.Errorf("%d %% reserved and %d %% used, %s, %s a price for shares: %d micros, want %d", c.share, c.percent, c.tier, name, got, b.want*cent)
			}
		}
	}
	// A share covers only its owner's time, on its GPU and in its hour.
	mine, other := hourOf(100, 0, api.TierStandard), hourOf(0, 100, api.TierStandard)
	other[0].Resource = "ins-2"
	for name, change := range map[string]func(*api.Use){
		"another instance": func(*api.Use) {},
		"another card":     func(u *api.Use) { u.Resource, u.Attributes.Model = "ins-1", "H100" },
		"another hour":     func(u *api.Use) { u.Resource, u.Hour = "ins-1", october.Add(time.Hour) },
		"another tier":     func(u *api.Use) { u.Resource, u.Meter = "ins-1", api.MeterGPUBasic },
	} {
		u := other[0]
		change(&u)
		all := append(slices.Clone(mine), u)
		slices.SortFunc(all, api.Use.Compare)
		want := int64(360 * cent)
		if u.Meter == api.MeterGPUBasic {
			want = 270 * cent
		}
		if got := invoice(t, book, october, november, all).TotalMicros; got != want {
			t.Errorf("%s: %d micros, want %d", name, got, want)
		}
	}
}
