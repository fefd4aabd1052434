package agent

import (
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// growths has the sizes that this process has let volumes grow to, which their
// statuses may not show yet. The zero value is ready to use.
type growths struct {
	mu      sync.Mutex
	granted map[string]int64 // bytes by volume, guarded by mu
}

// noRoomToGrow returns why the volume cannot have the requested size, because the
// node's own pool would allocate more than its limit; or it grants the size and
// returns none. Sizes that other volumes request and do not have yet do not count,
// because two could otherwise block each other.
func (rec *volumeReconciler) noRoomToGrow(v api.Volume) (none api.Reason) {
	if api.SharedPool(v.Assignment.Pool) {
		return none
	}
	self, _ := rec.cache.self()
	pool, ok := self.Pool(v.Assignment.Pool)
	if !ok || pool.LimitBytes <= 0 { // it has not reported yet, or has no limit
		return none
	}
	rec.growths.mu.Lock()
	defer rec.growths.mu.Unlock()
	promised := pool.ImageBytes
	for _, o := range all(rec.cache, rec.cache.volumes) {
		if other, _ := self.Pool(o.Assignment.Pool); o.Meta.ID == v.Meta.ID || other.Name != pool.Name {
			continue
		}
		if has := max(o.Status.SizeBytes, rec.growths.granted[o.Meta.ID]); has > 0 {
			promised += has
		} else {
			promised += o.Spec.SizeBytes
		}
	}
	if promised+v.Spec.SizeBytes <= pool.LimitBytes && pool.FreeBytes > 0 {
		if rec.growths.granted == nil {
			rec.growths.granted = map[string]int64{}
		}
		rec.growths.granted[v.Meta.ID] = v.Spec.SizeBytes
		return none
	}
	const mib = 1 << 20
	return plainly(api.CauseNoRoomToGrow, fmt.Sprintf("cannot grow to %d MiB: %d MiB of %d MiB of storage pool %s are allocated to others, %d MiB are free beside the reserve",
		v.Spec.SizeBytes/mib, promised/mib, pool.LimitBytes/mib, pool.Name, pool.FreeBytes/mib))
}
