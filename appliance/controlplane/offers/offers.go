// Package offers computes what is available now: slices of GPUs, how many of them fit
// and what an hour costs. The rules of the planner and of rating are not implemented
// here: their packages are called.
//
//	watch cache ─► plan.State, placement.Room ─► how many ┐
//	price books ─► pricebook.Schedule ─► invoice.Quote ───┴─► Offer
package offers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// entry identifies an offer; the zero value is the one without a GPU. Page tokens
// contain it.
type entry struct {
	Pool  string `json:"p,omitempty"`
	Model string `json:"m,omitempty"`
	Share int64  `json:"s,omitempty"`
	VRAM  int64  `json:"v,omitempty"`
	Tier  int    `json:"t,omitempty"` // index in api.GPUTiers
}

// compare orders offers: the one without a GPU first, then by pool and model, largest
// share first.
func (e entry) compare(f entry) int {
	return cmp.Or(cmp.Compare(e.Pool, f.Pool), cmp.Compare(e.Model, f.Model), cmp.Compare(f.Share, e.Share), cmp.Compare(f.VRAM, e.VRAM), cmp.Compare(e.Tier, f.Tier))
}

// kindOfGPU identifies the GPUs of a model in a pool.
type kindOfGPU struct{ pool, model string }

// snapshot is the state of the cluster at a moment. It is not safe for concurrent use.
type snapshot struct {
	state *plan.State
	room  *placement.Room
	gpus  map[kindOfGPU]int64 // the smallest VRAM of such a GPU, in bytes
	class string              // storage pool of a new root volume
	like  api.Instance        // template of new instances
}

func snapshotOf(s *plan.State, networking bool, now time.Time) *snapshot {
	p := &snapshot{state: s, room: plan.RoomOf(s, now), gpus: map[kindOfGPU]int64{}, class: plan.PoolForNew(s, "")}
	if networking {
		p.like.Spec.Networks = make([]api.InstanceNetwork, 1)
	}
	for _, g := range s.GPUs {
		if g.Status.VramBytes <= 0 || g.Meta.DeletedAt != nil {
			continue
		}
		k := kindOfGPU{cmp.Or(g.Spec.Pool, api.DefaultPool), g.Status.Model}
		if had, ok := p.gpus[k]; !ok || g.Status.VramBytes < had {
			p.gpus[k] = g.Status.VramBytes
		}
	}
	return p
}

// entries returns the requested entries, in order.
func (p *snapshot) entries(q api.OfferQuery) (out []entry) {
	if q.Flavor != "" && q.Model == "" && q.Pool == "" && q.Tier == "" && q.VRAMBytes == 0 {
		out = append(out, entry{})
	}
	for k, vram := range p.gpus {
		if q.Model != "" && q.Model != k.model || q.Pool != "" && q.Pool != k.pool {
			continue
		}
		wanted := api.SlicesOf(vram)
		if q.VRAMBytes > 0 {
			wanted = []api.Slice{{VRAMBytes: q.VRAMBytes, SharePercent: q.SharePercent}}
		}
		for _, slice := range wanted {
			for i, tier := range api.GPUTiers() {
				if q.Tier == "" || q.Tier == tier {
					out = append(out, entry{k.pool, k.model, slice.SharePercent, slice.VRAMBytes, i})
				}
			}
		}
	}
	slices.SortFunc(out, entry.compare)
	return out
}

// list returns one page. Only what is on it is counted and priced.
func (p *snapshot) list(q api.OfferQuery, prices pricebook.Schedule, now time.Time) (api.OfferList, error) {
	all := p.entries(q)
	if q.Continue != "" {
		last, err := api.FromPageToken[entry](q.Continue)
		if err != nil {
			return api.OfferList{}, err
		}
		i, found := slices.BinarySearchFunc(all, last, entry.compare)
		if found {
			i++
		}
		all = all[i:]
	}
	out := api.OfferList{Items: []api.Offer{}, AsOf: now.UTC()}
	if len(all) > q.Limit {
		all = all[:q.Limit]
		out.Continue = api.PageToken(all[q.Limit-1])
	}
	quoter, err := invoice.NewQuoter(prices, now.UTC().Truncate(time.Hour))
	if err != nil {
		return out, fmt.Errorf("read the prices of offers: %w", err)
	}
	flavor := p.state.Flavors[string(q.Flavor)]
	counts := map[entry]plan.Free{} // the tier does not matter for the count
	for _, e := range all {
		o, vgpu := p.offer(e, q.Flavor)
		same := e
		same.Tier = 0
		free, counted := counts[same]
		if !counted {
			free = plan.Count(p.state, p.room, p.like, placement.RequestOf(flavor.Spec, vgpu), now)
			counts[same] = free
		}
		o.Free, o.Nodes = free.Count, free.Nodes
		if err := price(&o, quoter, p.machine(o, flavor, q.RootBytes)); err != nil {
			return out, err
		}
		out.Items = append(out.Items, o)
	}
	return out, nil
}

// offer returns an offer without prices and counts, and its vGPU.
func (p *snapshot) offer(e entry, flavor api.FlavorID) (api.Offer, *api.VGPUSpec) {
	o := api.Offer{Kind: api.KindOffer, Flavor: flavor}
	if e == (entry{}) {
		return o, nil
	}
	o.Model, o.Pool, o.SharePercent, o.VramBytes, o.Tier = e.Model, e.Pool, e.Share, e.VRAM, api.GPUTiers()[e.Tier]
	o.GpuVramBytes = p.gpus[kindOfGPU{e.Pool, e.Model}]
	return o, &api.VGPUSpec{Pool: e.Pool, Model: e.Model, VramBytes: e.VRAM, SharePercent: e.Share, Tier: o.Tier}
}

// machine returns the machine of an offer, as it is metered. Without a flavor it has no
// processors, memory and disk.
func (p *snapshot) machine(o api.Offer, f api.Flavor, rootBytes int64) invoice.Machine {
	m := invoice.Machine{VRAMBytes: o.VramBytes, SharePercent: o.SharePercent, Model: o.Model, Pool: o.Pool, Tier: o.Tier}
	if o.Flavor != "" {
		m.VCPUs, m.MemoryBytes, m.Flavor = f.Spec.Vcpus, f.Spec.MemoryBytes, f.Meta.ID
		m.RootBytes, m.StorageClass = cmp.Or(rootBytes, f.Spec.RootBytes), p.class
	}
	return m
}

// price sets the prices of an offer, with the code that rates invoices.
func price(o *api.Offer, q invoice.Quoter, m invoice.Machine) error {
	idle, err := q.Quote(m, 0)
	if err != nil {
		return fmt.Errorf("quote the offer: %w", err)
	}
	full, err := q.Quote(m, 100)
	if err != nil {
		return fmt.Errorf("quote the offer at full use of the GPU: %w", err)
	}
	o.Currency, o.ReservedMicros, o.FullUseMicros = full.Currency, idle.TotalMicros, full.TotalMicros
	o.Prices = []api.OfferPrice{}
	for _, meter := range slices.Sorted(maps.Keys(full.Micros)) { // the meters at full use include those when idle
		o.Prices = append(o.Prices, api.OfferPrice{Meter: meter, ReservedMicros: idle.Micros[meter], FullUseMicros: full.Micros[meter]})
	}
	return nil
}
