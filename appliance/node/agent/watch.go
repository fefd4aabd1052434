package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// watcher turns events into keys to reconcile: changes in the store, the
// hypervisor's events, and vGPU backends that end.
type watcher struct {
	*core
	fence *fenceKeeper
}

func (w *watcher) watch(ctx context.Context) {
	_ = w.o.Changes.Follow(ctx, Kinds, w.merge) // ends with ctx
}

func (w *watcher) machineEvents(ctx context.Context) {
	for ctx.Err() == nil {
		events, err := w.o.Machines.Events(ctx)
		if err != nil {
			w.log.Warn("watch hypervisor events failed, retrying", "error", err)
			sleep(ctx, time.Second)
			continue
		}
		for e := range events {
			w.machineEvent(e)
		}
	}
}

func (w *watcher) machineEvent(e hypervisor.Event) {
	if e.Type != hypervisor.EventResync {
		w.trigger(key(api.KindInstance, string(e.ID)))
		return
	}
	for _, key := range w.cache.instanceKeys() {
		w.trigger(key)
	}
}

// merge merges changes of the store into the cache. The fence's list is updated
// before any of them is acted on.
func (w *watcher) merge(n watchcache.Update) { w.enqueue(w.cache.merge(n)) }

func (w *watcher) enqueue(keys []string) {
	if len(keys) == 0 {
		return
	}
	if err := w.fence.keep(false); err != nil {
		w.log.Warn("basalt-fence has an outdated list of instances to keep", "error", err) // each start and report retries
	}
	for _, key := range keys {
		w.trigger(key)
	}
}

func (w *watcher) backendExits(ctx context.Context) {
	if w.o.VGPUs == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-w.o.VGPUs.Exits():
			w.backendExit(id)
		}
	}
}

// backendExit triggers a running instance whose backend has ended. A backend that ends
// during a start makes the start fail, which is retried with growing delays; a trigger
// would cut them short.
func (w *watcher) backendExit(id api.InstanceID) {
	if in, ok := get(w.cache, w.cache.instances, string(id)); ok && in.Status.Phase == api.InstanceRunning {
		w.trigger(key(api.KindInstance, string(id)))
	}
}
