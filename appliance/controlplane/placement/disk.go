package placement

import (
	"fmt"
	"math"

	"github.com/basalt-gpu/basalt/api"
)

// AddDisk counts bytes that are promised of a node's local pool: a volume's size.
func (r *Room) AddDisk(n api.NodeID, bytes int64) {
	if n != "" {
		r.disk[n] += bytes
	}
}

// OnDisk returns how many volumes of a size fit in a node's local pool beside what is
// promised there, or why none does. What counts is what they may come to take: their
// disks are thin, and are paid for as a whole. Nothing is promised on a pool that is
// full to its reserve, however little of the promises is taken up.
func (r *Room) OnDisk(n api.Node, bytes int64) (int64, string) {
	pool := n.LocalStorage()
	if bytes <= 0 || pool.LimitBytes <= 0 { // a node of a version before has no limit
		return math.MaxInt64, ""
	}
	promised := r.disk[api.NodeID(n.Meta.ID)] + pool.ImageBytes
	if left := pool.LimitBytes - promised; bytes <= left && pool.FreeBytes > 0 {
		return times(left, bytes), ""
	}
	return 0, fmt.Sprintf("%s of local storage requested, %s of %s allocated and %s free beside the reserve of %s",
		Size(bytes), Size(promised), Size(pool.LimitBytes), Size(pool.FreeBytes), Size(pool.ReserveBytes))
}
