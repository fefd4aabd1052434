package offers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// fixture is a store, a Service over it and its price book.
type fixture struct {
	t       testing.TB
	store   *memstore.Store
	service *Service
	book    api.PriceBookSpec
	asked   int // how often prices were read
	now     time.Time
}

func (s *fixture) PricesOf(context.Context, api.OrganizationID, time.Time) (pricebook.Schedule, error) {
	s.asked++
	return pricebook.Always(s.book), nil
}

func open(t testing.TB) *fixture {
	s := &fixture{t: t, store: memstore.New(), book: pricebook.Default(), now: time.Date(2026, 10, 14, 9, 30, 0, 0, time.UTC)}
	cache := watchcache.New(s.store, slog.New(slog.DiscardHandler), plan.Kinds...)
	ctx, cancel := patience.Context(context.Background(), time.Minute)
	done := make(chan struct{})
	go func() { defer close(done); _ = cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	s.service = New(Options{Cache: cache, Prices: s, Now: func() time.Time { return s.now }})
	t.Cleanup(s.service.Close)
	return s
}

func (s *fixture) put(kind api.Kind, id, name string, spec, status any) {
	s.t.Helper()
	cmds := []api.Command{}
	if status == nil || spec != nil {
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Expect: api.AnyRevision, Data: api.Encode(spec)})
	}
	if status != nil {
		cmds = append(cmds, api.Command{Op: api.OpReport, Kind: kind, ID: id, Name: name, Expect: api.AnyRevision, Data: api.Encode(status)})
	}
	if _, err := s.store.Apply(context.Background(), api.Batch{At: s.now, Commands: cmds}); err != nil {
		s.t.Fatal(err)
	}
}

// stock adds nodes with GPUs, of two models and pools, and a flavor.
func (s *fixture) stock(nodes, gpus int) {
	s.t.Helper()
	s.put(api.KindFlavor, "flv-1", "small", api.FlavorSpec{Vcpus: 2, MemoryBytes: 4 << 30, RootBytes: 20 << 30}, nil)
	s.put(api.KindGPUPool, "pool-1", "default", api.GPUPoolSpec{}, nil)
	s.put(api.KindGPUPool, "pool-2", "fast", api.GPUPoolSpec{}, nil)
	for n := range nodes {
		id := fmt.Sprint("node-", n)
		s.put(api.KindNode, id, id, nil, api.NodeStatus{Vcpus: 256, MemoryBytes: 1 << 40, SeenAt: s.now})
		for g := range gpus {
			model, pool, vram := "NVIDIA L4", "", int64(24<<30)
			if g%2 == 1 {
				model, pool, vram = fmt.Sprint("NVIDIA H100 ", n%4), "fast", 80<<30
			}
			s.put(api.KindGPU, fmt.Sprintf("gpu-%d-%d", n, g), fmt.Sprintf("gpu-%d-%d", n, g), api.GPUSpec{Pool: pool}, api.GPUStatus{Node: api.NodeID(id), Model: model, VramBytes: vram})
		}
	}
}

// list waits until the service has the current state of the cluster.
func (s *fixture) list(q api.OfferQuery, until func(api.OfferList) bool) api.OfferList {
	s.t.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	ctx, cancel := patience.Context(s.t.Context(), 30*time.Second)
	defer cancel()
	for {
		l, err := s.service.Offers(ctx, q)
		if err == nil && (until == nil || until(l)) {
			return l
		}
		if err != nil && api.CodeOf(err) != api.CodeUnavailable {
			s.t.Fatal(err)
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("offers = %+v, %v; want those that the test waits for", l, err)
		case <-time.After(time.Millisecond):
		}
	}
}

func find(t *testing.T, l api.OfferList, model string, share int64, tier api.GPUTier) api.Offer {
	t.Helper()
	i := slices.IndexFunc(l.Items, func(o api.Offer) bool { return o.Model == model && o.SharePercent == share && o.Tier == tier })
	if i < 0 {
		t.Fatalf("no offer of %d %% of a %s, tier %s, among %d offers", share, model, tier, len(l.Items))
	}
	return l.Items[i]
}

func total(l api.OfferList) (n int64) {
	for _, o := range l.Items {
		n += o.Free
	}
	return n
}

func TestOffers(t *testing.T) {
	s := open(t)
	s.stock(2, 2)
	// For each of three kinds of GPU there are four shares and three tiers; both L4 are
	// free.
	l := s.list(api.OfferQuery{}, func(l api.OfferList) bool { return len(l.Items) == 36 && l.Items[0].Free == 2 })
	half := find(t, l, "NVIDIA L4", 50, api.TierStandard)
	// Half a GPU at 1.80 per hour and 12 GiB of VRAM at 0.01; all of its time doubles
	// the first.
	if half.VramBytes != 12<<30 || half.GpuVramBytes != 24<<30 || half.ReservedMicros != 900_000+120_000 || half.FullUseMicros != 1_800_000+120_000 || half.Currency != "EUR" || half.Free != 4 || half.Nodes != 2 || half.Pool != "default" {
		t.Errorf("offer of half an L4 = %+v, want 12 of 24 GiB at 1.02 to 1.92 per hour", half)
	}
	if q := find(t, l, "NVIDIA H100 1", 25, api.TierPremium); q.Free != 4 || q.Nodes != 1 || q.Pool != "fast" {
		t.Errorf("offer of a quarter of an H100 = %+v, want 4 on one node in pool fast", q)
	}
	sum := int64(0)
	for _, p := range half.Prices {
		sum += p.FullUseMicros
	}
	if sum != half.FullUseMicros {
		t.Errorf("sum of prices %+v = %d, want %d", half.Prices, sum, half.FullUseMicros)
	}

	// An instance gets a whole L4.
	s.put(api.KindInstance, "ins-1", "a", api.InstanceSpec{Flavor: "flv-1"}, nil)
	if _, err := s.store.Apply(t.Context(), api.Batch{At: s.now, Commands: []api.Command{{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision,
		Data: api.Encode(api.InstanceAssignment{Node: "node-0", Vcpus: 2, MemoryBytes: 4 << 30, Gpu: "gpu-0-0", VgpuVramBytes: 24 << 30, VgpuSharePercent: 100})}}}); err != nil {
		t.Fatal(err)
	}
	s.list(api.OfferQuery{Model: "NVIDIA L4"}, func(l api.OfferList) bool { return len(l.Items) == 12 && l.Items[0].Free == 1 && l.Items[0].Nodes == 1 })
}

func TestOffersOfInstances(t *testing.T) {
	s := open(t)
	s.stock(1, 2)
	l := s.list(api.OfferQuery{Flavor: "flv-1", Tier: ""}, func(l api.OfferList) bool { return len(l.Items) == 25 && l.Items[0].Nodes == 1 })
	none := l.Items[0]
	if none.Model != "" || none.Tier != "" || none.Free != 128 || none.ReservedMicros != none.FullUseMicros || none.ReservedMicros < 40_000 {
		t.Errorf("offer without a GPU = %+v, want 128 of them at one price", none)
	}
	bare, whole := s.list(api.OfferQuery{Tier: api.TierBasic}, nil), s.list(api.OfferQuery{Tier: api.TierBasic, Flavor: "flv-1"}, nil)
	a, b := find(t, bare, "NVIDIA L4", 100, api.TierBasic), find(t, whole, "NVIDIA L4", 100, api.TierBasic)
	if b.ReservedMicros-a.ReservedMicros != none.ReservedMicros {
		t.Errorf("instance with a GPU costs %d, the GPU %d and the instance %d; want the sum", b.ReservedMicros, a.ReservedMicros, none.ReservedMicros)
	}
	one := s.list(api.OfferQuery{Flavor: "flv-1", VRAMBytes: 6 << 30, SharePercent: 33, Model: "NVIDIA L4", Tier: api.TierStandard}, nil)
	if len(one.Items) != 1 || one.Items[0].Free != 3 || one.Items[0].VramBytes != 6<<30 {
		t.Errorf("offers of 6 GiB = %+v, want one with 3 free", one)
	}
	if far := s.list(api.OfferQuery{VRAMBytes: 90 << 30}, nil); total(far) != 0 || len(far.Items) != 6 {
		t.Errorf("offers of 90 GiB on GPUs of 24 and 80 = %+v, want 6 with none free", far)
	}
}

// Pages of any size are complete and in order, and each offer is on one.
func TestPages(t *testing.T) {
	s := open(t)
	s.stock(4, 4)
	all := s.list(api.OfferQuery{Flavor: "flv-1"}, func(l api.OfferList) bool { return len(l.Items) == 61 && l.Items[60].Free > 0 })
	for _, limit := range []int{1, 7, 60, 61} {
		var got []api.Offer
		for q := (api.OfferQuery{Flavor: "flv-1", Limit: limit}); ; {
			l := s.list(q, nil)
			got = append(got, l.Items...)
			if q.Continue = l.Continue; q.Continue == "" {
				break
			}
		}
		if !slices.EqualFunc(got, all.Items, func(a, b api.Offer) bool {
			return a.Model == b.Model && a.VramBytes == b.VramBytes && a.Tier == b.Tier && a.FullUseMicros == b.FullUseMicros
		}) {
			t.Errorf("pages of %d have %d offers, want the %d of one page in their order", limit, len(got), len(all.Items))
		}
	}
	if _, err := s.service.Offers(t.Context(), api.OfferQuery{Limit: 1, Continue: "nonsense"}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("offers with an invalid token: %v, want code %s", err, api.CodeInvalid)
	}
}

// A result is cached for a second, unless something changes.
func TestAnswersAreKept(t *testing.T) {
	s := open(t)
	s.stock(1, 1)
	s.list(api.OfferQuery{}, func(l api.OfferList) bool { return len(l.Items) == 12 })
	s.list(api.OfferQuery{}, nil)
	before := s.asked
	for range 10 {
		s.list(api.OfferQuery{}, nil)
	}
	if s.asked != before {
		t.Errorf("prices were read %d times for the same result, want 0", s.asked-before)
	}
	s.now = s.now.Add(time.Second)
	s.list(api.OfferQuery{}, nil)
	if s.asked != before+1 {
		t.Errorf("prices were read %d times after a second, want once", s.asked-before)
	}
	s.put(api.KindFlavor, "flv-9", "other", api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}, nil)
	s.list(api.OfferQuery{}, func(api.OfferList) bool { return s.asked > before+1 })
	for i := range 3 * maxPages { // ever new queries use no more memory
		s.list(api.OfferQuery{Model: fmt.Sprint("model ", i)}, nil)
		if len(s.service.pages) > maxPages {
			t.Fatalf("cached pages = %d, want at most %d", len(s.service.pages), maxPages)
		}
	}
}

func TestOffersBeforeTheObjectsHaveCome(t *testing.T) {
	s := &fixture{t: t, store: memstore.New()}
	svc := New(Options{Cache: watchcache.New(s.store, slog.New(slog.DiscardHandler), plan.Kinds...), Prices: s})
	defer svc.Close()
	if _, err := svc.Offers(t.Context(), api.OfferQuery{Limit: 1}); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("offers of an empty cache: %v, want code %s", err, api.CodeUnavailable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := svc.Offers(ctx, api.OfferQuery{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("offers with a canceled context: %v, want %v", err, context.Canceled)
	}
}

// randomPrices gives the book a random price for each meter, and others that are selected by
// model, by flavor and pool, by storage class and by tier.
func randomPrices(book *api.PriceBookSpec, random *rand.Rand) {
	book.Prices = slices.DeleteFunc(book.Prices, func(p api.Price) bool { return p.Where != (api.PriceSelector{}) })
	for i, p := range book.Prices {
		price := func() int64 { return random.Int64N(9_000_000) }
		book.Prices[i].PriceMicros, book.Prices[i].Tiers = price(), nil
		for _, where := range []api.PriceSelector{{Model: "NVIDIA L4"}, {Flavor: "flv-1", Pool: "fast"}, {StorageClass: "local"}, {Tier: string(api.TierPremium)}} {
			if where.Tier != "" && p.Meter != api.MeterGPUShare || random.IntN(2) == 0 {
				continue
			}
			p.PriceMicros, p.Tiers, p.Where = price(), nil, where
			book.Prices = append(book.Prices, p)
		}
	}
	book.Discounts = []api.Discount{{BasisPoints: 1 + random.Int64N(9_999)}}
}

// hourOf is the usage of the machine of an offer in an hour, as its node meters it: of a
// running instance with a root volume, and a GPU that is used for a percentage of the time.
func hourOf(o api.Offer, hour time.Time, rootBytes, percent int64) []api.Use {
	const seconds = 3600
	of := api.PriceSelector{Flavor: "flv-1", Model: o.Model, Pool: o.Pool}
	share := of
	share.Tier = string(o.Tier)
	all := []api.Use{
		{Resource: "ins-1", Meter: api.MeterVCPU, Quantity: 2 * seconds, Attributes: of},
		{Resource: "ins-1", Meter: api.MeterMemory, Quantity: 4 << 30 * seconds, Attributes: of},
		{Resource: "vol-1", Meter: api.MeterVolume, Quantity: rootBytes * seconds, Attributes: api.PriceSelector{StorageClass: "local"}},
	}
	if o.VramBytes > 0 {
		all = append(all, api.Use{Resource: "ins-1", Meter: api.MeterVRAM, Quantity: o.VramBytes * seconds, Attributes: of},
			api.Use{Resource: "ins-1", Meter: api.MeterGPUShare, Quantity: o.SharePercent * seconds, Attributes: share},
			api.Use{Resource: "ins-1", Meter: api.TierMeter(o.Tier), Quantity: int64(time.Hour) / 100 * percent, Attributes: of})
	}
	for i := range all {
		all[i].Hour, all[i].Project = hour, "prj-1"
	}
	all = slices.DeleteFunc(all, func(u api.Use) bool { return u.Quantity == 0 })
	slices.SortFunc(all, api.Use.Compare)
	return all
}

// The prices of offers, and their parts, are those of an invoice of the same hour: with an
// idle and with a fully used GPU, for thousands of offers by random price books.
func TestPricesAreTheInvoices(t *testing.T) {
	s := open(t)
	s.stock(2, 2)
	compared := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(22, seed))
		randomPrices(&s.book, random)
		s.now = s.now.Add(time.Hour)
		prices, hour := pricebook.Always(s.book), s.now.Truncate(time.Hour)
		root := (1 + random.Int64N(500)) << 30
		usual := s.list(api.OfferQuery{Flavor: "flv-1", RootBytes: root}, func(l api.OfferList) bool { return len(l.Items) == 37 })
		own := s.list(api.OfferQuery{Flavor: "flv-1", RootBytes: root, VRAMBytes: (16 + random.Int64N(20_000)) << 20, SharePercent: random.Int64N(101)},
			func(l api.OfferList) bool { return len(l.Items) == 9 })
		for _, o := range slices.Concat(usual.Items, own.Items) {
			for _, percent := range []int64{0, 100} {
				compared++
				rating, err := invoice.NewRating("org-1", prices, invoice.Whole(hour, hour.Add(time.Hour)))
				if err != nil {
					t.Fatalf("seed %d: new rating: %v", seed, err)
				}
				for _, u := range hourOf(o, hour, root, percent) {
					if err := rating.Add(u); err != nil {
						t.Fatalf("seed %d: add %+v: %v", seed, u, err)
					}
				}
				inv, err := rating.Invoice()
				if err != nil {
					t.Fatalf("seed %d: invoice: %v", seed, err)
				}
				want := map[api.Meter]int64{}
				for _, l := range inv.Lines {
					want[l.Meter] += l.AmountMicros
				}
				got, total := map[api.Meter]int64{}, o.ReservedMicros
				if percent == 100 {
					total = o.FullUseMicros
				}
				for _, p := range o.Prices {
					micros := p.ReservedMicros
					if percent == 100 {
						micros = p.FullUseMicros
					}
					if _, charged := want[p.Meter]; charged || micros != 0 {
						got[p.Meter] += micros
					}
				}
				if total != inv.TotalMicros || o.Currency != inv.Currency || !maps.Equal(got, want) {
					t.Fatalf("seed %d: price of %+v at %d %% = %d (%v), want the invoice's %d (%v)", seed, o, percent, total, got, inv.TotalMicros, want)
				}
			}
		}
	}
	if compared < 5000 {
		t.Errorf("compared %d prices, want thousands", compared)
	}
}
