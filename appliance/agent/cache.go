package agent

import (
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/api"
)

// Kinds that an agent looks at.
var Kinds = []api.Kind{api.KindInstance, api.KindVolume, api.KindImage, api.KindGPU}

// cache is this node's part of the store. What it returns is read-only.
type cache struct {
	node api.NodeID

	mu        sync.Mutex
	synced    bool            // the first snapshot is complete
	fresh     map[string]bool // keys of the snapshot that is coming in
	removed   map[string]bool // ids are never reused: an answer that comes late must not bring one back
	instances map[string]api.Instance
	volumes   map[string]api.Volume
	images    map[string]api.Image
	gpus      map[string]api.GPU
}

func newCache(node api.NodeID) *cache {
	return &cache{node: node, instances: map[string]api.Instance{}, volumes: map[string]api.Volume{},
		images: map[string]api.Image{}, gpus: map[string]api.GPU{}, removed: map[string]bool{}}
}

// maxRemoved bounds the memory of removed ids; an answer is late by seconds at most.
const maxRemoved = 10000

func key(kind api.Kind, id string) string { return string(kind) + "/" + id }

func splitKey(k string) (api.Kind, string) {
	kind, id, _ := strings.Cut(k, "/")
	return api.Kind(kind), id
}

// begin is called before each watch: it may start with a snapshot, and what is
// not in that is gone.
func (c *cache) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = map[string]bool{}
}

// apply takes in a change and returns the keys to look at.
func (c *cache) apply(e api.Event) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Type == api.EventSync {
		return c.endSnapshot()
	}
	kind, id := e.Object.Kind, e.Object.Meta.ID
	k := key(kind, id)
	if e.Type == api.EventRemove {
		if len(c.removed) >= maxRemoved {
			clear(c.removed)
		}
		c.removed[k] = true
	} else if c.removed[k] {
		return nil
	}
	if c.fresh != nil {
		c.fresh[k] = true
	}
	changed := false
	keys := []string{k}
	switch kind {
	case api.KindInstance:
		changed = put(c.instances, e, func(i api.Instance) (bool, int64) { return i.Assignment.Node == c.node, i.Meta.Revision })
	case api.KindVolume:
		changed = put(c.volumes, e, func(v api.Volume) (bool, int64) { return v.Assignment.Node == c.node, v.Meta.Revision })
		if v, ok := c.volumes[id]; ok && v.Spec.Instance != "" {
			keys = append(keys, key(api.KindInstance, string(v.Spec.Instance)))
		}
	case api.KindImage:
		changed = put(c.images, e, func(i api.Image) (bool, int64) { return true, i.Meta.Revision })
	case api.KindGPU:
		put(c.gpus, e, func(g api.GPU) (bool, int64) { return g.Status.Node == c.node, g.Meta.Revision })
	}
	if !changed {
		return nil
	}
	return keys
}

func (c *cache) endSnapshot() (keys []string) {
	c.synced = true
	if c.fresh == nil {
		return nil
	}
	keys = append(keys, drop(c, api.KindInstance, c.instances)...)
	keys = append(keys, drop(c, api.KindVolume, c.volumes)...)
	keys = append(keys, drop(c, api.KindImage, c.images)...)
	drop(c, api.KindGPU, c.gpus)
	c.fresh = nil
	return keys
}

// drop forgets what the snapshot did not hold.
func drop[T any](c *cache, kind api.Kind, m map[string]T) (keys []string) {
	for id := range m {
		if k := key(kind, id); !c.fresh[k] {
			delete(m, id)
			keys = append(keys, k)
		}
	}
	return keys
}

// put keeps the object if it is this node's and newer than what is known, and
// says whether anything of this node's changed.
func put[T any](m map[string]T, e api.Event, mine func(T) (mine bool, revision int64)) bool {
	id := e.Object.Meta.ID
	old, known := m[id]
	if e.Type == api.EventRemove {
		delete(m, id)
		return known
	}
	t, err := api.Decode[T](e.Object)
	if err != nil {
		return false // the store holds only what our own code encoded
	}
	is, revision := mine(t)
	if known {
		if _, have := mine(old); have >= revision {
			return false
		}
	}
	if !is {
		delete(m, id)
		return known
	}
	m[id] = t
	return true
}

func get[T any](c *cache, m map[string]T, id string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := m[id]
	return t, ok
}

func all[T any](c *cache, m map[string]T) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]T, 0, len(m))
	for _, t := range m {
		out = append(out, t)
	}
	return out
}

func (c *cache) instanceKeys() []string {
	var keys []string
	for _, i := range all(c, c.instances) {
		keys = append(keys, key(api.KindInstance, i.Meta.ID))
	}
	return keys
}

func (c *cache) isSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}
