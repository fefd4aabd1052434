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

// poolSet holds the node's storage pools. It is safe for concurrent use.
type poolSet struct {
	current atomic.Pointer[map[string]sds.Driver] // by name
}

func newPoolSet(pools map[string]sds.Driver) *poolSet {
	s := &poolSet{}
	pools = maps.Clone(pools)
	s.current.Store(&pools)
	return s
}

// drivers returns the drivers of the node's pools by name. The map must not be
// changed.
func (s *poolSet) drivers() map[string]sds.Driver { return *s.current.Load() }

// set adds a pool that can be used from now on, replacing one of that name; a nil
// driver removes it.
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

// Storage reports on Ceph on this node.
type Storage interface {
	// Works reports whether Ceph is enabled, and returns what keeps it from working
	// on this node.
	Works() (on bool, err error)
}

// driver returns the pool of that name. An empty name means the local pool:
// assignments that are older than pools have none.
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

// findVolume returns a volume of the pool.
func findVolume(ctx context.Context, p sds.Driver, id api.VolumeID) (sds.Volume, error) {
	v, err := p.Volume(ctx, id)
	return v, wrap(err, "find volume %s in its pool", id)
}

// findSnapshot returns an error unless the pool has the snapshot.
func findSnapshot(ctx context.Context, p sds.Driver, s sds.SnapshotRef) error {
	_, err := p.Snapshot(ctx, s.Volume, s.ID)
	return wrap(err, "find snapshot %s of volume %s", s.ID, s.Volume)
}

// deleteSnapshot deletes a snapshot from its pool.
func deleteSnapshot(ctx context.Context, p sds.Driver, s sds.SnapshotRef, a sds.Access) error {
	return wrap(p.DeleteSnapshot(ctx, s.Volume, s.ID, a), "delete snapshot %s of volume %s", s.ID, s.Volume)
}

// inOrder iterates over the current pools, shared ones first, because an image in
// one of them need not be fetched.
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

// poolAnswers is how long the node's report waits for a pool: while Ceph is
// unavailable its commands block.
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

// home returns the pool that images are imported into.
func (s *poolSet) home() string {
	for name, p := range s.inOrder() {
		if p.Capabilities().Shared {
			return name
		}
	}
	return api.PoolLocal
}

// DiskPools reports on the node's storage pools on disks of their own.
type DiskPools interface {
	// DiskPool returns the disk of a pool, and whether the disk is being released.
	DiskPool(name string) (disk api.DiskID, draining bool)
	// Released reports whether a pool is certainly not on a disk of this node any
	// more, or on one that was released and is missing: its content is lost.
	Released(name string) bool
	// PoolsWork returns what is wrong with pools that this node should have, or
	// nil.
	PoolsWork() error
}

// contentLost reports whether a pool's content is lost, so that deleting it needs no
// access.
func (c *core) contentLost(pool string) bool {
	return api.DiskPool(pool) && c.o.Disks != nil && c.o.Disks.Released(pool)
}

// report fills in the node's pools and their content. promised has the bytes that
// are allocated to volumes in each of its own pools.
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
			continue // its volumes cannot be accessed from this node now
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

// hasVolume reports whether the volume is on this node, created for the current
// assignment: its status may be another node's.
func (s *poolSet) hasVolume(ctx context.Context, v api.Volume) bool {
	p, err := s.driver(v.Assignment.Pool)
	if err != nil {
		return false
	}
	have, err := findVolume(ctx, p, api.VolumeID(v.Meta.ID))
	return err == nil && have.Epoch >= v.Assignment.Recreate
}
