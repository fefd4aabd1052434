package placement

import (
	"cmp"
	"fmt"
	"math"

	"github.com/basalt-gpu/basalt/api"
)

// diskPool is a node's own storage pool.
type diskPool struct {
	node api.NodeID
	pool string
}

// poolOf returns a node's own pool; an empty name means the local pool that every node
// has.
func poolOf(n api.NodeID, pool string) diskPool { return diskPool{n, cmp.Or(pool, api.PoolLocal)} }

// AddDisk counts bytes of a node's own pool as allocated: a volume's size.
func (r *Room) AddDisk(n api.NodeID, pool string, bytes int64) {
	if n != "" {
		r.disk[poolOf(n, pool)] += bytes
	}
}

// OnDisk returns how many volumes of a size fit in a node's own pool besides what is
// allocated there, or why none does. Their full size counts: the disks are thin, but
// are paid for as a whole. Nothing is allocated in a pool that is full to its reserve,
// however little of the allocations is in use.
func (r *Room) OnDisk(n api.Node, pool string, bytes int64) (int64, string) {
	p, _ := n.Pool(pool)
	if bytes <= 0 {
		return math.MaxInt64, ""
	}
	if p.Draining {
		return 0, "storage pool " + p.Name + " is being released"
	}
	if p.LimitBytes <= 0 { // a node of an older version has no limit
		return math.MaxInt64, ""
	}
	promised := r.disk[poolOf(api.NodeID(n.Meta.ID), pool)] + p.ImageBytes
	if left := p.LimitBytes - promised; bytes <= left && p.FreeBytes > 0 {
		return times(left, bytes), ""
	}
	return 0, fmt.Sprintf("%s of %s requested, %s of %s allocated and %s free beside the reserve of %s",
		api.FormatBytes(bytes), storageOf(pool), api.FormatBytes(promised), api.FormatBytes(p.LimitBytes), api.FormatBytes(p.FreeBytes), api.FormatBytes(p.ReserveBytes))
}

// storageOf returns the name of a pool for a sentence.
func storageOf(pool string) string {
	if api.DiskPool(pool) {
		return "storage pool " + pool
	}
	return "local storage"
}
