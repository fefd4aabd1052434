package agent

import (
	"fmt"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// growths are the sizes that this process has let volumes grow to, of which their
// statuses may not tell yet. The zero value is ready.
type growths struct {
	mu      sync.Mutex
	granted map[string]int64 // bytes by volume, under mu
}

// noRoomToGrow returns why the volume cannot have the size that is asked for, or nothing
// and lets it: the node's own pool would promise more than it may. Sizes that others ask
// for and do not have yet count for nothing, or two would keep each other waiting.
func (rec *volumeReconciler) noRoomToGrow(v api.Volume) string {
	if api.SharedPool(v.Assignment.Pool) {
		return ""
	}
	self, _ := rec.cache.self()
	pool, ok := self.Pool(v.Assignment.Pool)
	if !ok || pool.LimitBytes <= 0 { // it has not reported yet, or has no limit
		return ""
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
		return ""
	}
	const mib = 1 << 20
	return fmt.Sprintf("cannot grow to %d MiB: %d MiB of %d MiB of storage pool %s are allocated to others, %d MiB are free beside the reserve",
		v.Spec.SizeBytes/mib, promised/mib, pool.LimitBytes/mib, pool.Name, pool.FreeBytes/mib)
}
