package agent

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// watcher turns what happens into keys to reconcile: changes in the store, the
// hypervisor's events, and vGPU backends that end.
type watcher struct {
	*core
	fence *fenceKeeper
}

func (w *watcher) watch(ctx context.Context) {
	_ = w.o.Changes.Follow(ctx, Kinds, w.take) // ends with ctx
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
		w.kick(key(api.KindInstance, string(e.ID)))
		return
	}
	for _, key := range w.cache.instanceKeys() {
		w.kick(key)
	}
}

// take in what has changed in the store: the fence hears of it before anything is
// done about it.
func (w *watcher) take(n watchcache.News) { w.heard(w.cache.take(n)) }

func (w *watcher) heard(keys []string) {
	if len(keys) == 0 {
		return
	}
	if err := w.fence.keep(false); err != nil {
		w.log.Warn("report instances to keep to basalt-fence failed", "error", err) // each start and report tries again
	}
	for _, key := range keys {
		w.kick(key)
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

// backendExit looks at a running instance. One that ends while it is being
// started is the start's failure: that is tried again with growing waits,
// which a kick would cut short.
func (w *watcher) backendExit(id api.InstanceID) {
	if in, ok := get(w.cache, w.cache.instances, string(id)); ok && in.Status.Phase == api.InstanceRunning {
		w.kick(key(api.KindInstance, string(id)))
	}
}
