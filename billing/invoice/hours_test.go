package invoice

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

var update = flag.Bool("update", false, "write testdata/hours.json")

// anHour of an instance that the portal shows the price of, and what rating makes
// of it in millionths.
type anHour struct {
	Name string            `json:"name"`
	At   time.Time         `json:"at"`
	Book api.PriceBookSpec `json:"book"`
	Size struct {
		VCPUs       int64  `json:"vcpus"`
		MemoryBytes int64  `json:"memoryBytes"`
		RootBytes   int64  `json:"rootBytes"`
		VRAMBytes   int64  `json:"vramBytes"`
		Tier        string `json:"tier"`
		Share       int64  `json:"sharePercent,omitempty"`
		Pool        string `json:"pool,omitempty"`
		Model       string `json:"model,omitempty"`
	} `json:"size"`
	GPUPercent int64            `json:"gpuPercent"`
	Cost       map[string]int64 `json:"cost"`
}

// hours that the portal's price is held against (ui/src/lib/price.test.ts).
func hours() (all []anHour) {
	plain := pricebook.Default()
	rich := pricebook.Default()
	rich.Discounts = []api.Discount{
		{BasisPoints: 333},
		{BasisPoints: 1250, Meters: []api.Meter{api.MeterGPU, api.MeterVCPU}, Until: november},
		{BasisPoints: 9000, From: november},
	}
	for i, p := range rich.Prices {
		switch p.Meter {
		case api.MeterVCPU:
			rich.Prices[i].Tiers = []api.PriceTier{{UpTo: 1, PriceMicros: 0}, {UpTo: 3, PriceMicros: p.PriceMicros / 3}}
		case api.MeterGPU:
			rich.Prices = append(rich.Prices, api.Price{Meter: p.Meter, From: november, PriceMicros: p.PriceMicros + 7, Per: p.Per, Unit: p.Unit})
		}
	}
	alike := pricebook.Default() // one price for all tiers
	alike.Prices = slices.DeleteFunc(alike.Prices, func(p api.Price) bool { return p.Meter == api.MeterGPUPremium || p.Meter == api.MeterGPUBasic })
	add := func(name string, book api.PriceBookSpec, at time.Time, vram, percent int64, tier string) {
		h := anHour{Name: name, At: at, Book: book, GPUPercent: percent}
		h.Size.VCPUs, h.Size.MemoryBytes, h.Size.RootBytes, h.Size.VRAMBytes, h.Size.Tier = 4, 8<<30, 41<<30+1, vram, tier
		all = append(all, h)
	}
	add("no GPU", plain, october, 0, 100, "standard")
	add("half a GPU", plain, october, 8<<30, 50, "standard")
	add("all of a GPU", plain, october, 8<<30, 100, "standard")
	add("no share", plain, october, 8<<30, 0, "standard")
	add("premium", plain, october, 3<<30, 33, "premium")
	add("basic", plain, october, 3<<30, 33, "basic")
	add("tiers and discounts", rich, october, 8<<30, 37, "standard")
	add("later price and discount", rich, november, 8<<30, 37, "standard")
	add("premium without a price", alike, october, 8<<30, 100, "premium")
	byCard := pricebook.Default()
	byCard.Prices = append(byCard.Prices,
		api.Price{Meter: api.MeterGPUShare, Where: api.PriceSelector{Model: "NVIDIA H100"}, PriceMicros: 3_100_000, Per: 360_000},
		api.Price{Meter: api.MeterGPU, Where: api.PriceSelector{Model: "NVIDIA H100"}, PriceMicros: 3_500_000, Per: 3_600_000_000_000},
		api.Price{Meter: api.MeterGPU, Where: api.PriceSelector{Pool: "slow"}, PriceMicros: 700_000, Per: 3_600_000_000_000})
	shared := func(name string, book api.PriceBookSpec, share, percent int64, tier, pool, model string) {
		add(name, book, october, 8<<30, percent, tier)
		size := &all[len(all)-1].Size
		size.Share, size.Pool, size.Model = share, pool, model
	}
	shared("reserved, idle", plain, 50, 0, "standard", "default", "")
	shared("reserved, as guaranteed", plain, 50, 50, "standard", "default", "")
	shared("reserved, full use", plain, 50, 100, "standard", "default", "")
	shared("reserved premium, full use", plain, 30, 100, "premium", "default", "")
	shared("reserved of a model", byCard, 25, 80, "standard", "fast", "NVIDIA H100")
	shared("reserved in a pool", byCard, 25, 80, "standard", "slow", "NVIDIA L4")
	shared("reserved of a model, basic", byCard, 25, 80, "basic", "slow", "NVIDIA H100")
	random := rand.New(rand.NewPCG(22, 1))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	for i := range 12 {
		book := []api.PriceBookSpec{plain, byCard}[random.IntN(2)]
		shared(fmt.Sprint("random ", i), book, random.Int64N(101), random.Int64N(101), pick("premium", "standard", "basic"), pick("slow", "default"), pick("NVIDIA L4", "NVIDIA H100"))
	}
	return all
}

// rated is what an invoice of the hour alone says of it.
func (h anHour) rated(t *testing.T) map[string]int64 {
	t.Helper()
	const seconds = 3600
	gpu := map[string]api.Meter{"standard": api.MeterGPU, "premium": api.MeterGPUPremium, "basic": api.MeterGPUBasic}[h.Size.Tier]
	used := map[api.Meter]int64{
		api.MeterVCPU: h.Size.VCPUs * seconds, api.MeterMemory: h.Size.MemoryBytes * seconds,
		api.MeterVolume: h.Size.RootBytes * seconds, api.MeterVRAM: h.Size.VRAMBytes * seconds,
	}
	if h.Size.VRAMBytes > 0 {
		used[gpu] = seconds * int64(time.Second) * h.GPUPercent / 100
		used[api.MeterGPUShare] = h.Size.Share * seconds
	}
	r, err := NewRating("org", pricebook.Always(h.Book), h.At, h.At.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var all []api.Use
	for m, n := range used {
		u := api.Use{Hour: h.At, Meter: m, Project: "p", Resource: "r", Quantity: n, Attributes: api.PriceSelector{Pool: h.Size.Pool, Model: h.Size.Model}}
		if m == api.MeterGPUShare {
			u.Attributes.Tier = h.Size.Tier
		}
		all = append(all, u)
	}
	slices.SortFunc(all, api.Use.Compare)
	for _, u := range all {
		if err := r.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	p, err := r.Invoice()
	if err != nil {
		t.Fatal(err)
	}
	cost := map[string]int64{"compute": 0, "disk": 0, "vram": 0, "gpu": 0, "total": p.TotalMicros}
	part := map[api.Meter]string{api.MeterVCPU: "compute", api.MeterMemory: "compute", api.MeterVolume: "disk", api.MeterVRAM: "vram", gpu: "gpu", api.MeterGPUShare: "gpu"}
	for _, l := range p.Lines {
		cost[part[l.Meter]] += l.AmountMicros
	}
	return cost
}

// The portal's prices before the click are held against this file, and this file
// against the rating.
func TestHours(t *testing.T) {
	all := hours()
	for i, h := range all {
		all[i].Cost = h.rated(t)
	}
	want, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	const path = "testdata/hours.json"
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not what rating makes of these hours (%v): write it anew with -update, and look at the difference", path, err)
	}
}
