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
)

// Kinds that an agent looks at.
var Kinds = []api.Kind{api.KindInstance, api.KindVolume, api.KindImage, api.KindGPU, api.KindNode, api.KindMigration, api.KindSnapshot,
	api.KindBackup, api.KindBackupTarget, api.KindGPUPool}

// cache is this node's part of the store: its instances, volumes, snapshots,
// backups, GPUs and migrations, and every image, node, GPU pool and backup target. What it returns is read-only.
type cache struct {
	node api.NodeID

	mu         sync.Mutex
	synced     bool            // the first snapshot is complete
	fresh      map[string]bool // keys of the snapshot that is coming in
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
		changed = put(c, c.instances, e, func(i api.Instance) (bool, int64) { return i.Assignment.Node == c.node, i.Meta.Revision })
	case api.KindVolume:
		was := c.volumes[id].Spec.Instance
		changed = put(c, c.volumes, e, func(v api.Volume) (bool, int64) { return v.Assignment.Node == c.node, v.Meta.Revision })
		for _, in := range []api.InstanceID{c.volumes[id].Spec.Instance, was} {
			if in != "" && !slices.Contains(keys, key(api.KindInstance, string(in))) {
				keys = append(keys, key(api.KindInstance, string(in)))
			}
		}
	case api.KindSnapshot:
		changed = put(c, c.snapshots, e, func(s api.Snapshot) (bool, int64) { return s.Assignment.Node == c.node, s.Meta.Revision })
	case api.KindBackup:
		changed = put(c, c.backups, e, func(b api.Backup) (bool, int64) { return b.Assignment.Node == c.node, b.Meta.Revision })
	case api.KindBackupTarget:
		changed = put(c, c.targets, e, func(t api.BackupTarget) (bool, int64) { return true, t.Meta.Revision })
	case api.KindImage:
		changed = put(c, c.images, e, func(i api.Image) (bool, int64) { return true, i.Meta.Revision })
	case api.KindGPU:
		put(c, c.gpus, e, func(g api.GPU) (bool, int64) { return g.Status.Node == c.node, g.Meta.Revision })
	case api.KindGPUPool:
		put(c, c.gpuPools, e, func(p api.GPUPool) (bool, int64) { return true, p.Meta.Revision })
	case api.KindNode:
		was := c.nodes[id].Assignment
		put(c, c.nodes, e, func(n api.Node) (bool, int64) { return true, n.Meta.Revision })
		// Nodes report all the time; what the cluster thinks of them is news.
		if changed = !reflect.DeepEqual(was, c.nodes[id].Assignment); changed {
			keys = append(keys, sortedKeys(api.KindMigration, c.migrations)...)
			keys = append(keys, sortedKeys(api.KindImage, c.images)...)
			keys = append(keys, sortedKeys(api.KindBackupTarget, c.targets)...)
		}
	case api.KindMigration:
		changed = put(c, c.migrations, e, func(m api.Migration) (bool, int64) {
			return m.Assignment.Source == c.node || m.Assignment.Target == c.node, m.Meta.Revision
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

func (c *cache) endSnapshot() (keys []string) {
	if !c.synced { // nothing was decided until now
		c.synced = true
		keys = append(keys, key(api.KindNode, string(c.node)))
		keys = append(keys, sortedKeys(api.KindInstance, c.instances)...)
		keys = append(keys, sortedKeys(api.KindVolume, c.volumes)...)
		keys = append(keys, sortedKeys(api.KindImage, c.images)...)
		keys = append(keys, sortedKeys(api.KindMigration, c.migrations)...)
		keys = append(keys, sortedKeys(api.KindSnapshot, c.snapshots)...)
		keys = append(keys, sortedKeys(api.KindBackup, c.backups)...)
		keys = append(keys, sortedKeys(api.KindBackupTarget, c.targets)...)
	}
	if c.fresh == nil {
		return keys
	}
	keys = append(keys, drop(c, api.KindInstance, c.instances)...)
	keys = append(keys, drop(c, api.KindVolume, c.volumes)...)
	keys = append(keys, drop(c, api.KindImage, c.images)...)
	drop(c, api.KindGPU, c.gpus)
	drop(c, api.KindGPUPool, c.gpuPools)
	drop(c, api.KindNode, c.nodes)
	keys = append(keys, drop(c, api.KindMigration, c.migrations)...)
	keys = append(keys, drop(c, api.KindSnapshot, c.snapshots)...)
	keys = append(keys, drop(c, api.KindBackup, c.backups)...)
	drop(c, api.KindBackupTarget, c.targets)
	c.fresh = nil
	return keys
}

// drop forgets what the snapshot did not hold.
func drop[T any](c *cache, kind api.Kind, m map[string]T) (keys []string) {
	for _, k := range sortedKeys(kind, m) {
		if _, id := splitKey(k); !c.fresh[k] {
			delete(m, id)
			keys = append(keys, k)
		}
	}
	return keys
}

// put keeps the object if it is this node's and newer than what is known, and
// says whether anything of this node's changed.
func put[T any](c *cache, m map[string]T, e api.Event, mine func(T) (mine bool, revision int64)) bool {
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
	k := key(e.Object.Kind, id)
	if l, ok := c.left[k]; ok && revision <= l.revision {
		return false
	}
	if !is {
		if known {
			if len(c.left) >= maxRemoved {
				clear(c.left)
			}
			c.left[k] = leaving{e.Object.Meta.UpdatedAt, revision}
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

// leftAt says when the object was given to another node; zero: this process
// did not see it.
func (c *cache) leftAt(k string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left[k].at
}

// sawRemoved says whether this process heard the store remove the object: it was
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
