package agent

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

const (
	condStorage = "Storage"
	condCeph    = "Ceph"
	condPools   = "DiskPools"
)

// poolSet is the node's storage pools.
type poolSet struct {
	current atomic.Pointer[map[string]sds.Driver] // by name
}

func newPoolSet(pools map[string]sds.Driver) *poolSet {
	s := &poolSet{}
	pools = maps.Clone(pools)
	s.current.Store(&pools)
	return s
}

// drivers of the node's pools, by name. The map is not to be changed.
func (s *poolSet) drivers() map[string]sds.Driver { return *s.current.Load() }

// set takes a pool in that can be used from now on, instead of one of that
// name; nil: it cannot any more.
func (s *poolSet) set(name string, d sds.Driver) {
	for {
		old := s.current.Load()
		now := maps.Clone(*old)
		if now[name] = d; d == nil {
			delete(now, name)
		}
		if s.current.CompareAndSwap(old, &now) {
			return
		}
	}
}

// Storage is Ceph on this node.
type Storage interface {
	// Works reports whether Ceph is switched on, and what keeps it from working
	// here.
	Works() (on bool, err error)
}

// driver of that name; empty: local, as in assignments of before there were
// pools.
func (s *poolSet) driver(name string) (sds.Driver, error) {
	if p := s.drivers()[cmp.Or(name, api.PoolLocal)]; p != nil {
		return p, nil
	}
	hint := "check that its directory is mounted and --shared-dir is set"
	if api.DiskPool(name) {
		hint = "check the disk: basalt disk list"
	}
	return nil, api.Errorf(api.CodeUnavailable, "this node has no storage pool %s", name).WithHint("%s", hint)
}

// inOrder are the pools as they are now: what is shared first, since an image
// there need not be fetched.
func (s *poolSet) inOrder() iter.Seq2[string, sds.Driver] {
	all := s.drivers()
	names := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(names, func(x, y string) int {
		return cmp.Compare(b2i(all[y].Capabilities().Shared), b2i(all[x].Capabilities().Shared))
	})
	return func(yield func(string, sds.Driver) bool) {
		for _, name := range names {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

// poolAnswers is how long the node's report waits for what a pool holds: while
// Ceph is away its commands wait.
const poolAnswers = time.Minute

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *poolSet) shared(name string) bool {
	p := s.drivers()[name]
	return p != nil && p.Capabilities().Shared
}

// home is where images go that come from outside.
func (s *poolSet) home() string {
	for name, p := range s.inOrder() {
		if p.Capabilities().Shared {
			return name
		}
	}
	return api.PoolLocal
}

// DiskPools is the node's storage pools on disks of their own.
type DiskPools interface {
	// DiskPool returns which disk a pool is, and whether the disk was released.
	DiskPool(name string) (disk api.DiskID, draining bool)
	// GivenUp reports whether a pool is certainly no disk of this node any more, or one
	// that was released and is gone: what lay there is lost.
	GivenUp(name string) bool
	// PoolsWork returns what is wrong with pools that should be here, or nil.
	PoolsWork() error
}

// givenUp reports whether what lay in a pool is lost, and deleting it is done.
func (c *core) givenUp(pool string) bool {
	return api.DiskPool(pool) && c.o.Disks != nil && c.o.Disks.GivenUp(pool)
}

// report fills in what the node's pools are and hold. Promised is of the volumes in each
// of its own pools, in bytes.
func (s *poolSet) report(ctx context.Context, st *api.NodeStatus, promised map[string]int64, now time.Time) {
	var bad error
	images := map[api.ImageID]bool{}
	for name, p := range s.inOrder() {
		ctx, cancel := context.WithTimeout(ctx, poolAnswers)
		space, err := p.Space(ctx)
		bad = cmp.Or(bad, err)
		if name == api.PoolLocal {
			st.StorageBytes, st.StorageFreeBytes = space.TotalBytes, space.FreeBytes
		}
		if err != nil && s.shared(name) {
			cancel()
			continue // its volumes cannot be had here now
		}
		st.Ceph = st.Ceph || name == api.PoolCeph && err == nil
		pool := api.StoragePool{Name: name, ID: p.PoolID(), Shared: s.shared(name), SizeBytes: space.TotalBytes, FreeBytes: space.FreeBytes}
		held, err := p.Images(ctx)
		cancel()
		bad = cmp.Or(bad, err)
		for _, img := range held {
			images[img.ID] = true
			pool.ImageBytes += img.SizeBytes
		}
		if pool.PromisedBytes = pool.ImageBytes + promised[name]; pool.Shared {
			pool.ImageBytes, pool.PromisedBytes = 0, 0
		}
		st.Pools = append(st.Pools, pool)
	}
	st.Images = slices.Sorted(maps.Keys(images))
	st.Conditions = append(st.Conditions, answer(condStorage, bad, now))
}

// hasVolume reports whether the volume is on this node, made when the assignment
// says: its status may be what another node said.
func (s *poolSet) hasVolume(ctx context.Context, v api.Volume) bool {
	p, err := s.driver(v.Assignment.Pool)
	if err != nil {
		return false
	}
	have, err := p.Volume(ctx, api.VolumeID(v.Meta.ID))
	return err == nil && have.Epoch >= v.Assignment.Recreate
}
