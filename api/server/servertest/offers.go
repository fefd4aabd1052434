package servertest

import (
	"cmp"
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// FakeOffers is the offers of a fake cluster: half a GPU, and if a flavor is given, before
// it an instance without a GPU.
type FakeOffers struct{}

// Offers implements server.Offers.
func (FakeOffers) Offers(_ context.Context, q api.OfferQuery) (api.OfferList, error) {
	l := api.OfferList{Items: []api.Offer{}, AsOf: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	if q.Flavor != "" && q.VRAMBytes == 0 && q.Continue == "" {
		l.Items = append(l.Items, api.Offer{Kind: api.KindOffer, Flavor: q.Flavor, Currency: "EUR", ReservedMicros: 25_000, FullUseMicros: 25_000, Free: 7, Nodes: 2,
			Prices: []api.OfferPrice{{Meter: api.MeterVCPU, ReservedMicros: 25_000, FullUseMicros: 25_000}}})
	}
	if len(l.Items) == q.Limit {
		l.Continue = "more"
		return l, nil
	}
	share := q.SharePercent
	if q.VRAMBytes == 0 {
		share = 50
	}
	l.Items = append(l.Items, api.Offer{Kind: api.KindOffer, Flavor: q.Flavor, Model: "NVIDIA L4", Pool: "default", GpuVramBytes: 24 << 30, VramBytes: cmp.Or(q.VRAMBytes, 12<<30),
		SharePercent: share, Tier: cmp.Or(q.Tier, api.TierStandard), Currency: "EUR", ReservedMicros: 950_000, FullUseMicros: 1_850_000, Free: 3, Nodes: 2,
		Prices: []api.OfferPrice{{Meter: api.MeterVRAM, ReservedMicros: 950_000, FullUseMicros: 950_000}, {Meter: api.MeterGPU, FullUseMicros: 900_000}}})
	return l, nil
}
