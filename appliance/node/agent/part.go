package agent

import (
	"maps"
	"reflect"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// part is the node's part of one kind: those of its objects that concern the node.
type part[T any] struct {
	kind    objects.Kind
	objects map[string]T
	// mine reports whether an object concerns the node.
	mine func(T) bool
	// news reports whether the change of an object from was to now needs a
	// reconcile of its key; the zero value means no object. nil means that
	// every change does.
	news func(was, now T) bool
	// also returns further keys to reconcile when an object changes; nil means
	// none.
	also func(was, now T) []string
}

// anyPart is a part of any kind.
type anyPart interface {
	of() objects.Kind
	put(c *cache, change objects.Change) (keys []string)
	drop(there map[string]bool) (keys []string)
}

func newPart[T any](mine func(T) bool) *part[T] {
	return &part[T]{kind: objects.Of[T](), objects: map[string]T{}, mine: mine}
}

func everything[T any](T) bool { return true }

// unseen is the news of a kind whose changes need no reconcile.
func unseen[T any](T, T) bool { return false }

func (p *part[T]) of() objects.Kind { return p.kind }

// put applies a change to the part, and returns the keys to reconcile.
func (p *part[T]) put(c *cache, change objects.Change) (keys []string) {
	was := p.objects[change.ID]
	changed := p.keep(c, change)
	now := p.objects[change.ID]
	if !changed || p.news != nil && !p.news(was, now) {
		return nil
	}
	keys = []string{key(p.kind.Kind, change.ID)}
	if p.also != nil {
		keys = append(keys, p.also(was, now)...)
	}
	return keys
}

// keep stores the object if it concerns this node and is newer than the stored one,
// and removes it if it does not exist or does not concern this node any more. It
// reports whether the part changed.
func (p *part[T]) keep(c *cache, change objects.Change) bool {
	id := change.ID
	old, known := p.objects[id]
	if change.Now == nil {
		delete(p.objects, id)
		return known
	}
	t := change.Now.(T)
	meta := api.MetaOf(&t)
	if known && api.MetaOf(&old).Revision >= meta.Revision {
		return false
	}
	k := key(p.kind.Kind, id)
	if l, ok := c.left[k]; ok && meta.Revision <= l.revision {
		return false
	}
	if !p.mine(t) {
		if known {
			if len(c.left) >= maxRemoved {
				clear(c.left)
			}
			c.left[k] = leaving{meta.UpdatedAt, meta.Revision}
		}
		delete(p.objects, id)
		return known
	}
	delete(c.left, k)
	p.objects[id] = t
	return true
}

// drop removes the objects that are not in there, and returns the keys to
// reconcile.
func (p *part[T]) drop(there map[string]bool) (keys []string) {
	for _, k := range p.keys() {
		_, id := splitKey(k)
		if there[k] {
			continue
		}
		was := p.objects[id]
		delete(p.objects, id)
		var none T
		if p.news == nil || p.news(was, none) {
			keys = append(keys, k)
		}
	}
	return keys
}

// keys returns the keys ordered by ID, so that nothing depends on the order of a
// map.
func (p *part[T]) keys() (keys []string) {
	for _, id := range slices.Sorted(maps.Keys(p.objects)) {
		keys = append(keys, key(p.kind.Kind, id))
	}
	return keys
}

func get[T any](c *cache, p *part[T], id string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := p.objects[id]
	return t, ok
}

func all[T any](c *cache, p *part[T]) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]T, 0, len(p.objects))
	for _, id := range slices.Sorted(maps.Keys(p.objects)) {
		out = append(out, p.objects[id])
	}
	return out
}

// describe creates the cache's parts: which objects of a kind concern this node,
// and which keys are reconciled when one changes.
func (c *cache) describe() {
	c.instances = newPart(func(i api.Instance) bool { return i.Assignment.Node == c.node })
	c.volumes = newPart(func(v api.Volume) bool { return v.Assignment.Node == c.node })
	c.volumes.also = func(was, now api.Volume) []string { return instanceKeys(now.Spec.Instance, was.Spec.Instance) }
	c.snapshots = newPart(func(s api.Snapshot) bool { return s.Assignment.Node == c.node })
	c.backups = newPart(func(b api.Backup) bool { return b.Assignment.Node == c.node })
	c.migrations = newPart(func(m api.Migration) bool {
		return m.Assignment.Source == c.node || m.Assignment.Target == c.node
	})
	c.migrations.also = func(_, now api.Migration) []string {
		if now.Spec.Volume != "" {
			return []string{key(api.KindVolume, string(now.Spec.Volume))}
		}
		return instanceKeys(now.Spec.Instance)
	}
	c.gpus = newPart(func(g api.GPU) bool { return g.Status.Node == c.node })
	c.gpus.news = unseen[api.GPU]
	c.gpuPools = newPart(everything[api.GPUPool])
	c.gpuPools.news = unseen[api.GPUPool]
	c.images, c.targets = newPart(everything[api.Image]), newPart(everything[api.BackupTarget])
	c.nodes = newPart(everything[api.Node])
	// Nodes report all the time; only a change of their assignment needs a
	// reconcile.
	c.nodes.news = func(was, now api.Node) bool { return !reflect.DeepEqual(was.Assignment, now.Assignment) }
	c.nodes.also = func(_, _ api.Node) []string {
		return slices.Concat(c.migrations.keys(), c.images.keys(), c.targets.keys())
	}
	c.parts = []anyPart{c.instances, c.volumes, c.images, c.gpus, c.nodes, c.migrations, c.snapshots, c.backups, c.targets, c.gpuPools}
}

// instanceKeys returns the keys of the IDs that are not empty, each once.
func instanceKeys(ids ...api.InstanceID) (keys []string) {
	for _, id := range ids {
		if k := key(api.KindInstance, string(id)); id != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
