package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const condStorage = "Storage"

// pool of that name; empty: local, as in assignments of before there were
// pools.
func (a *Agent) pool(name string) (sds.Driver, error) {
	if p := a.o.Pools[cmp.Or(name, api.PoolLocal)]; p != nil {
		return p, nil
	}
	return nil, api.Errorf(api.CodeUnavailable, "the node has no storage pool %s", name).
		WithHint("look whether its directory is mounted and --shared-dir is set")
}

// poolNames in order: what is shared first, since an image there need not be
// fetched.
func (a *Agent) poolNames() []string {
	names := slices.Sorted(maps.Keys(a.o.Pools))
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Compare(b2i(a.shared(y)), b2i(a.shared(x)))
	})
	return names
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (a *Agent) shared(name string) bool {
	p := a.o.Pools[name]
	return p != nil && p.Capabilities().Shared
}

// homePool is where images go that come from outside.
func (a *Agent) homePool() string {
	for _, name := range a.poolNames() {
		if a.shared(name) {
			return name
		}
	}
	return api.PoolLocal
}

// reportPools fills in what the node's pools are and hold.
func (a *Agent) reportPools(ctx context.Context, st *api.NodeStatus, now time.Time) {
	var bad error
	images := map[api.ImageID]bool{}
	for _, name := range a.poolNames() {
		p := a.o.Pools[name]
		space, err := p.Space(ctx)
		bad = cmp.Or(bad, err)
		if name == api.PoolLocal {
			st.StorageBytes, st.StorageFreeBytes = space.TotalBytes, space.FreeBytes
		}
		if err != nil && a.shared(name) {
			continue // its volumes cannot be had here now
		}
		st.Pools = append(st.Pools, api.StoragePool{Name: name, ID: p.PoolID(), Shared: a.shared(name), SizeBytes: space.TotalBytes, FreeBytes: space.FreeBytes})
		held, err := p.Images(ctx)
		bad = cmp.Or(bad, err)
		for _, img := range held {
			images[img.ID] = true
		}
	}
	st.Images = slices.Sorted(maps.Keys(images))
	st.Conditions = append(st.Conditions, answer(condStorage, bad, now))
}
