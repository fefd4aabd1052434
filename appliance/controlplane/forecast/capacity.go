package forecast

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store is what capacities are read from.
type Store interface {
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Use(ctx context.Context, q api.UseQuery) (api.UsePage, error)
}

// maxAge is how old a result may be.
const maxAge = 10 * time.Minute

// Service implements server.Capacity. It reads for one caller at a time.
type Service struct {
	store Store
	now   func() time.Time

	mu      sync.Mutex // guards the fields below
	history history
	last    api.Capacity
}

// New returns a Service that reads a store; now is usually time.Now.
func New(store Store, now func() time.Time) *Service { return &Service{store: store, now: now} }

// Capacity returns the GPUs of each model and pool. The result is read-only.
func (s *Service) Capacity(ctx context.Context) (api.Capacity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return api.Capacity{}, err
	}
	now := s.now().UTC()
	if age := now.Sub(s.last.AsOf); age >= 0 && age < maxAge {
		return s.last, nil
	}
	organizations, err := api.All[api.Organization](ctx, s.store, api.ListQuery{Kind: api.KindOrganization})
	if err != nil {
		return api.Capacity{}, err
	}
	ids := make([]string, len(organizations))
	for i, o := range organizations {
		ids[i] = o.Meta.ID
	}
	if err := s.history.update(ctx, s.store, ids, now); err != nil {
		return api.Capacity{}, err
	}
	rooms, err := roomsOf(ctx, s.store)
	if err != nil {
		return api.Capacity{}, err
	}
	out := api.Capacity{AsOf: now, Gpus: []api.GPUCapacity{}}
	for g, r := range rooms {
		out.Gpus = append(out.Gpus, s.history.capacity(g, r))
	}
	slices.SortFunc(out.Gpus, func(a, b api.GPUCapacity) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Model, b.Model))
	})
	s.last = out
	return out, nil
}

// room is what the GPUs of a group have, and what of it is allocated.
type room struct {
	count     int64
	vramBytes int64 // with the pool's overcommitment
	allocated level
}

// roomsOf returns the GPUs that exist, by group.
func roomsOf(ctx context.Context, s Store) (map[group]room, error) {
	gpus, err := api.All[api.GPU](ctx, s, api.ListQuery{Kind: api.KindGPU})
	if err != nil {
		return nil, err
	}
	pools, err := api.All[api.GPUPool](ctx, s, api.ListQuery{Kind: api.KindGPUPool})
	if err != nil {
		return nil, err
	}
	instances, err := api.All[api.Instance](ctx, s, api.ListQuery{Kind: api.KindInstance})
	if err != nil {
		return nil, err
	}
	overcommit := map[string]int64{}
	for _, p := range pools {
		overcommit[p.Meta.Name] = p.Spec.VramOvercommitPercent
	}
	rooms, of := map[group]room{}, map[api.GPUID]group{}
	for _, g := range gpus {
		if g.Status.VramBytes <= 0 || g.Meta.DeletedAt != nil {
			continue
		}
		id := group{cmp.Or(g.Spec.Pool, api.DefaultPool), g.Status.Model}
		r := rooms[id]
		r.count++
		r.vramBytes += g.Status.VramBytes / 100 * max(100, overcommit[id.pool])
		rooms[id], of[api.GPUID(g.Meta.ID)] = r, id
	}
	for _, in := range instances {
		id, exists := of[in.Assignment.Gpu]
		if !exists {
			continue
		}
		r := rooms[id]
		r.allocated.sharePercent += float64(in.Assignment.VgpuSharePercent)
		r.allocated.vramBytes += float64(in.Assignment.VgpuVramBytes)
		rooms[id] = r
	}
	return rooms, nil
}

// capacity returns the forecast of a group: of GPU time and VRAM, what is full first
// counts.
func (h *history) capacity(g group, r room) api.GPUCapacity {
	out := api.GPUCapacity{Pool: g.pool, Model: g.model, Count: r.count, VramBytes: r.vramBytes, Trend: api.CapacityUnknown}
	for _, of := range []struct {
		value          func(level) float64
		now, available float64
	}{
		{func(l level) float64 { return l.sharePercent }, r.allocated.sharePercent, 100 * float64(r.count)},
		{func(l level) float64 { return l.vramBytes }, r.allocated.vramBytes, float64(r.vramBytes)},
	} {
		out.AllocatedPercent = max(out.AllocatedPercent, 100*of.now/of.available)
		points := h.points(g, of.value)
		out.History = int64(len(points))
		trend, known := TrendOf(points)
		if !known {
			continue
		}
		if out.Trend == api.CapacityUnknown {
			out.Trend = api.CapacitySteady
		}
		if d, grows := trend.Until(of.now, of.available); grows && (out.Trend != api.CapacityGrowing || d.Expected < out.FullInDays) {
			out.Trend, out.FullInDays, out.EarliestDays, out.LatestDays = api.CapacityGrowing, d.Expected, d.Earliest, d.Latest
		}
	}
	if out.AllocatedPercent >= 100 {
		out.Trend, out.FullInDays, out.EarliestDays, out.LatestDays = api.CapacityFull, 0, 0, 0
	}
	return out
}
