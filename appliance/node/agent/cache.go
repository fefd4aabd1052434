package agent

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Kinds that an agent looks at: what the cache must have.
var Kinds = []objects.Kind{
	objects.Of[api.Instance](), objects.Of[api.Volume](), objects.Of[api.Image](), objects.Of[api.GPU](), objects.Of[api.Node](),
	objects.Of[api.Migration](), objects.Of[api.Snapshot](), objects.Of[api.Backup](), objects.Of[api.BackupTarget](), objects.Of[api.GPUPool](),
}

// decoded returns the change that an object is which the store has just answered;
// not ok: it is of no kind that matters here. The store holds only what our own
// code encoded, so it can be decoded.
func decoded(o api.Object) (c objects.Change, ok bool) {
	for _, k := range Kinds {
		if k.Kind == o.Kind {
			c, err := k.Put(o)
			return c, err == nil
		}
	}
	return c, false
}

// cache is this node's part of the store: its instances, volumes, snapshots,
// backups, GPUs and migrations, and every image, node, GPU pool and backup target. What it returns is read-only.
type cache struct {
	node api.NodeID

	mu         sync.Mutex
	synced     bool            // everything has come
	removed    map[string]bool // ids are never reused: an answer that comes late must not bring one back
	left       map[string]leaving
	instances  map[string]api.Instance
	volumes    map[string]api.Volume
	images     map[string]api.Image
	gpus       map[string]api.GPU
	nodes      map[string]api.Node
	migrations map[string]api.Migration
	snapshots  map[string]api.Snapshot
	backups    map[string]api.Backup
	targets    map[string]api.BackupTarget
	gpuPools   map[string]api.GPUPool
}

func newCache(node api.NodeID) *cache {
	return &cache{node: node, instances: map[string]api.Instance{}, volumes: map[string]api.Volume{},
		images: map[string]api.Image{}, gpus: map[string]api.GPU{}, removed: map[string]bool{}, left: map[string]leaving{},
		nodes: map[string]api.Node{}, migrations: map[string]api.Migration{}, snapshots: map[string]api.Snapshot{},
		backups: map[string]api.Backup{}, targets: map[string]api.BackupTarget{}, gpuPools: map[string]api.GPUPool{}}
}

// otherNodes are the cluster's other nodes that are not being removed.
func (c *cache) otherNodes() (all []api.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.nodes {
		if id != string(c.node) && n.Meta.DeletedAt == nil {
			all = append(all, n)
		}
	}
	return all
}

// leaving is how what was this node's was given to another: until then its use
// is counted here, and an answer from before, that comes late, must not bring
// it back.
type leaving struct {
	at       time.Time
	revision int64
}

// maxRemoved bounds the memory of removed ids; an answer is late by seconds at most.
const maxRemoved = 10000

func key(kind api.Kind, id string) string { return string(kind) + "/" + id }

func splitKey(k string) (api.Kind, string) {
	kind, id, _ := strings.Cut(k, "/")
	return api.Kind(kind), id
}

// take in what has changed, and return the keys to look at.
func (c *cache) take(n watchcache.News) (keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range n.Changes {
		keys = append(keys, c.put(change)...)
	}
	if n.All {
		keys = append(keys, c.dropMissing(n.Changes)...)
	}
	if n.All && !c.synced { // nothing was decided until now
		c.synced = true
		keys = append(keys, key(api.KindNode, string(c.node)))
	}
	return keys
}

// apply takes in one change that came another way than by the watch.
func (c *cache) apply(change objects.Change) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(change)
}

func (c *cache) put(change objects.Change) []string {
	id, k := change.ID, key(change.Kind, change.ID)
	if change.Now == nil {
		if len(c.removed) >= maxRemoved {
			clear(c.removed)
		}
		c.removed[k] = true
	} else if c.removed[k] {
		return nil
	}
	changed := false
	keys := []string{k}
	switch change.Kind {
	case api.KindInstance:
		changed = put(c, c.instances, change, func(i api.Instance) (bool, api.Meta) { return i.Assignment.Node == c.node, i.Meta })
	case api.KindVolume:
		was := c.volumes[id].Spec.Instance
		changed = put(c, c.volumes, change, func(v api.Volume) (bool, api.Meta) { return v.Assignment.Node == c.node, v.Meta })
		for _, in := range []api.InstanceID{c.volumes[id].Spec.Instance, was} {
			if in != "" && !slices.Contains(keys, key(api.KindInstance, string(in))) {
				keys = append(keys, key(api.KindInstance, string(in)))
			}
		}
	case api.KindSnapshot:
		changed = put(c, c.snapshots, change, func(s api.Snapshot) (bool, api.Meta) { return s.Assignment.Node == c.node, s.Meta })
	case api.KindBackup:
		changed = put(c, c.backups, change, func(b api.Backup) (bool, api.Meta) { return b.Assignment.Node == c.node, b.Meta })
	case api.KindBackupTarget:
		changed = put(c, c.targets, change, func(t api.BackupTarget) (bool, api.Meta) { return true, t.Meta })
	case api.KindImage:
		changed = put(c, c.images, change, func(i api.Image) (bool, api.Meta) { return true, i.Meta })
	case api.KindGPU:
		put(c, c.gpus, change, func(g api.GPU) (bool, api.Meta) { return g.Status.Node == c.node, g.Meta })
	case api.KindGPUPool:
		put(c, c.gpuPools, change, func(p api.GPUPool) (bool, api.Meta) { return true, p.Meta })
	case api.KindNode:
		was := c.nodes[id].Assignment
		put(c, c.nodes, change, func(n api.Node) (bool, api.Meta) { return true, n.Meta })
		// Nodes report all the time; what the cluster thinks of them is news.
		if changed = !reflect.DeepEqual(was, c.nodes[id].Assignment); changed {
			keys = append(keys, sortedKeys(api.KindMigration, c.migrations)...)
			keys = append(keys, sortedKeys(api.KindImage, c.images)...)
			keys = append(keys, sortedKeys(api.KindBackupTarget, c.targets)...)
		}
	case api.KindMigration:
		changed = put(c, c.migrations, change, func(m api.Migration) (bool, api.Meta) {
			return m.Assignment.Source == c.node || m.Assignment.Target == c.node, m.Meta
		})
		if in := c.migrations[id].Spec.Instance; in != "" {
			keys = append(keys, key(api.KindInstance, string(in)))
		}
	}
	if !changed {
		return nil
	}
	return keys
}

// card is what a card's pool decides about it. The node's memory backs what the
// pool promises beyond the card's VRAM, and at least what its slices have been
// promised.
func (c *cache) card(g api.GPU) (decided Card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var promised int64
	for _, in := range c.instances {
		if string(in.Assignment.Gpu) == g.Meta.ID {
			promised += in.Assignment.VgpuVramBytes
		}
	}
	for _, p := range c.gpuPools {
		if p.Meta.Name == cmp.Or(g.Spec.Pool, api.DefaultPool) {
			promised = max(promised, p.Spec.Promised(g.Status.VramBytes))
			decided.Interop = p.Spec.Interop
		}
	}
	decided.SwapBytes = max(promised-g.Status.VramBytes, 0)
	return decided
}

// dropMissing forgets what is known here and not among all objects that there are:
// an answer of the store may have brought it.
func (c *cache) dropMissing(all []objects.Change) (keys []string) {
	there := map[string]bool{}
	for _, change := range all {
		there[key(change.Kind, change.ID)] = change.Now != nil
	}
	keys = append(keys, drop(there, api.KindInstance, c.instances)...)
	keys = append(keys, drop(there, api.KindVolume, c.volumes)...)
	keys = append(keys, drop(there, api.KindImage, c.images)...)
	drop(there, api.KindGPU, c.gpus)
	drop(there, api.KindGPUPool, c.gpuPools)
	drop(there, api.KindNode, c.nodes)
	keys = append(keys, drop(there, api.KindMigration, c.migrations)...)
	keys = append(keys, drop(there, api.KindSnapshot, c.snapshots)...)
	keys = append(keys, drop(there, api.KindBackup, c.backups)...)
	drop(there, api.KindBackupTarget, c.targets)
	return keys
}

func drop[T any](there map[string]bool, kind api.Kind, m map[string]T) (keys []string) {
	for _, k := range sortedKeys(kind, m) {
		if _, id := splitKey(k); !there[k] {
			delete(m, id)
			keys = append(keys, k)
		}
	}
	return keys
}

// put keeps the object if it is this node's and newer than what is known, and
// reports whether anything of this node's changed.
func put[T any](c *cache, m map[string]T, change objects.Change, mine func(T) (mine bool, meta api.Meta)) bool {
	id := change.ID
	old, known := m[id]
	if change.Now == nil {
		delete(m, id)
		return known
	}
	t := change.Now.(T)
	is, meta := mine(t)
	if known {
		if _, have := mine(old); have.Revision >= meta.Revision {
			return false
		}
	}
	k := key(change.Kind, id)
	if l, ok := c.left[k]; ok && meta.Revision <= l.revision {
		return false
	}
	if !is {
		if known {
			if len(c.left) >= maxRemoved {
				clear(c.left)
			}
			c.left[k] = leaving{meta.UpdatedAt, meta.Revision}
		}
		delete(m, id)
		return known
	}
	delete(c.left, k)
	m[id] = t
	return true
}

// sortedKeys in the order of the ids, so that nothing depends on a map's.
func sortedKeys[T any](kind api.Kind, m map[string]T) (keys []string) {
	for _, id := range slices.Sorted(maps.Keys(m)) {
		keys = append(keys, key(kind, id))
	}
	return keys
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
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}

func (c *cache) instanceKeys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sortedKeys(api.KindInstance, c.instances)
}

// leftAt returns when the object was given to another node; zero: this process
// did not see it.
func (c *cache) leftAt(k string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left[k].at
}

// sawRemoved reports whether this process heard the store remove the object: it was
// there, and is deleted for good.
func (c *cache) sawRemoved(k string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed[k]
}

// self is this node as the cluster has it.
func (c *cache) self() (api.Node, bool) { return get(c, c.nodes, string(c.node)) }

// migrationOf the instance, to or from this node, that has not ended.
func (c *cache) migrationOf(id api.InstanceID) (api.Migration, bool) {
	for _, m := range all(c, c.migrations) {
		if m.Spec.Instance == id && !m.Assignment.Phase.Ended() && m.Assignment.Phase != "" && m.Assignment.Phase != api.MigrationPending {
			return m, true
		}
	}
	return api.Migration{}, false
}

func (c *cache) isSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced
}
