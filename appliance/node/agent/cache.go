package agent

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Kinds are the kinds that an agent uses: the watch cache must have them.
var Kinds = func() (kinds []objects.Kind) {
	for _, p := range newCache("").parts {
		kinds = append(kinds, p.of())
	}
	return kinds
}()

// decoded returns the change that an object returned by the store represents. It is
// not ok if the agent does not use the kind. Decoding cannot fail for content of
// the store, which only Basalt's own code encodes.
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
// backups, GPUs and migrations, and every image, node, GPU pool and backup target.
// What it returns is read-only.
type cache struct {
	node api.NodeID

	mu         sync.Mutex
	synced     bool            // the first snapshot is complete
	removed    map[string]bool // IDs are never reused: a late response must not restore a removed object
	left       map[string]leaving
	instances  *part[api.Instance]
	volumes    *part[api.Volume]
	images     *part[api.Image]
	gpus       *part[api.GPU]
	nodes      *part[api.Node]
	migrations *part[api.Migration]
	snapshots  *part[api.Snapshot]
	backups    *part[api.Backup]
	targets    *part[api.BackupTarget]
	gpuPools   *part[api.GPUPool]
	parts      []anyPart // all of these
}

func newCache(node api.NodeID) *cache {
	c := &cache{node: node, removed: map[string]bool{}, left: map[string]leaving{}}
	c.describe()
	return c
}

// otherNodes returns the cluster's other nodes that are not being removed.
func (c *cache) otherNodes() (all []api.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range c.nodes.objects {
		if id != string(c.node) && n.Meta.DeletedAt == nil {
			all = append(all, n)
		}
	}
	return all
}

// leaving records when an object of this node was assigned to another: until then
// its usage is counted here, and a late response from before must not restore it.
type leaving struct {
	at       time.Time
	revision int64
}

// maxRemoved bounds the memory of removed IDs; a response is late by seconds at
// most.
const maxRemoved = 10000

func key(kind api.Kind, id string) string { return string(kind) + "/" + id }

func splitKey(k string) (api.Kind, string) {
	kind, id, _ := strings.Cut(k, "/")
	return api.Kind(kind), id
}

// merge merges a message of the watch and returns the keys to reconcile.
func (c *cache) merge(n watchcache.Update) (keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range n.Changes {
		keys = append(keys, c.put(change)...)
	}
	if n.All {
		keys = append(keys, c.dropMissing(n.Changes)...)
	}
	if n.All && !c.synced { // no key was decided until now
		c.synced = true
		keys = append(keys, key(api.KindNode, string(c.node)))
	}
	return keys
}

// apply merges one change that did not come by the watch, and returns the keys to
// reconcile.
func (c *cache) apply(change objects.Change) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(change)
}

func (c *cache) put(change objects.Change) []string {
	k := key(change.Kind, change.ID)
	if change.Now == nil {
		if len(c.removed) >= maxRemoved {
			clear(c.removed)
		}
		c.removed[k] = true
	} else if c.removed[k] {
		return nil
	}
	for _, p := range c.parts {
		if p.of().Kind == change.Kind {
			return p.put(c, change)
		}
	}
	return nil
}

// card returns what a GPU's pool decides about it. The node's memory backs what the
// pool allocates beyond the GPU's VRAM, and at least what its slices have been
// allocated.
func (c *cache) card(g api.GPU) (decided Card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var promised int64
	for _, in := range c.instances.objects {
		if string(in.Assignment.Gpu) == g.Meta.ID {
			promised += in.Assignment.VgpuVramBytes
		}
	}
	for _, p := range c.gpuPools.objects {
		if p.Meta.Name == cmp.Or(g.Spec.Pool, api.DefaultPool) {
			promised = max(promised, p.Spec.AllocatableBytes(g.Status.VramBytes))
			decided.Interop = p.Spec.Interop
		}
	}
	decided.SwapBytes = max(promised-g.Status.VramBytes, 0)
	return decided
}

// dropMissing removes cached objects that are not among all, the complete list: a
// response of the store may have added them.
func (c *cache) dropMissing(all []objects.Change) (keys []string) {
	there := map[string]bool{}
	for _, change := range all {
		there[key(change.Kind, change.ID)] = change.Now != nil
	}
	for _, p := range c.parts {
		keys = append(keys, p.drop(there)...)
	}
	return keys
}

func (c *cache) instanceKeys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instances.keys()
}

// leftAt returns when the object was assigned to another node. It is zero if this
// process did not see that.
func (c *cache) leftAt(k string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left[k].at
}

// sawRemoved reports whether this process saw the store remove the object: it
// existed, and is deleted for good.
func (c *cache) sawRemoved(k string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed[k]
}

// self returns the Node object of this node.
func (c *cache) self() (api.Node, bool) { return get(c, c.nodes, string(c.node)) }

// migrationOf returns the migration of the instance, to or from this node, that has
// begun and not ended.
func (c *cache) migrationOf(id api.InstanceID) (api.Migration, bool) {
	for _, m := range all(c, c.migrations) {
		if m.Spec.Instance == id && !m.Assignment.Phase.Ended() && m.Assignment.Phase != "" && m.Assignment.Phase != api.MigrationPending {
			return m, true
		}
	}
	return api.Migration{}, false
}

// migrationOfVolume returns the migration of the volume, to or from this node, that has
// begun and not ended.
func (c *cache) migrationOfVolume(id api.VolumeID) (api.Migration, bool) {
	for _, m := range all(c, c.migrations) {
		if m.Spec.Volume == id && m.Assignment.Phase == api.MigrationPreparing {
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
