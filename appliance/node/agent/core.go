package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// errStale ends a reconcile that was decided on outdated objects: the cache has the
// current ones, so the key is decided on again.
var errStale = errors.New("the object has changed since the decision")

// core holds what every reconciler and every periodic task of the agent needs: the
// options, the cache of the store, the pools, and the ways to write to the store.
type core struct {
	o     Options
	log   *slog.Logger
	cache *cache
	jobs  *jobs

	trigger func(key string)    // requests that the key is reconciled soon
	changed func(keys []string) // updates the fence's list, then requests that the keys are reconciled

	pools   *poolSet
	members *membership
	files   *instanceFiles
	domain  *domainCalls
}

func newCore(o Options) *core {
	c := &core{o: o, log: o.Log.With("node", o.NodeName), cache: newCache(o.NodeID)}
	c.jobs = newJobs(c)
	c.pools = newPoolSet(o.Pools)
	c.members = &membership{node: o.NodeID, cache: c.cache}
	c.files = &instanceFiles{o: &c.o}
	c.domain = &domainCalls{o: &c.o}
	return c
}

// mergeChange merges into the cache an object that the store has returned, or (Now
// is nil) that the store does not have any more.
func (co *core) mergeChange(c objects.Change) { co.changed(co.cache.apply(c)) }

// mergeObject merges into the cache an object that the store has returned.
func (co *core) mergeObject(o api.Object) {
	if c, ok := decoded(o); ok {
		co.mergeChange(c)
	}
}

// apply commits commands and merges their result into the cache at once, so that
// the next step does not decide on outdated objects.
func (co *core) apply(ctx context.Context, cmds ...api.Command) error {
	objects, err := co.o.Store.Apply(ctx, api.Batch{At: co.o.Now().UTC(), Commands: cmds})
	if err != nil {
		return fmt.Errorf("write %s to the store: %w", objectsOf(cmds), err)
	}
	for _, o := range objects {
		if o.Kind == api.KindNode {
			co.mergeObject(o) // written on any revision, so it may contain decisions of others
		} else if c, ok := decoded(o); ok {
			co.cache.apply(c) // the node's own write needs no reconcile
		}
	}
	return nil
}

// objectsOf returns the kinds and IDs of the objects that commands change.
func objectsOf(cmds []api.Command) string {
	var all []string
	for _, c := range cmds {
		all = append(all, api.ObjectRef{Kind: c.Kind, ID: c.ID}.String())
	}
	return strings.Join(all, ", ")
}

// read returns an object as the store has it now.
func (co *core) read(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	o, err := co.o.Store.Get(ctx, kind, id)
	return o, wrap(err, "read %s %s from the store", kind, id)
}

// forget removes the agent's finalizer. It must be called only when no part of
// the object is left on this node.
func (co *core) forget(ctx context.Context, kind api.Kind, id string) error {
	_, err := co.o.Store.Apply(ctx, api.Batch{At: co.o.Now().UTC(), Commands: []api.Command{
		{Op: api.OpForget, Kind: kind, ID: id, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent}}})
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return wrap(err, "remove the finalizer of %s %s", kind, id)
}

// report writes a status at the revision that it was decided on, so that it never
// overwrites the status of a node that owns the object by now. It returns errStale
// after a conflict.
func (co *core) report(ctx context.Context, kind api.Kind, id string, revision int64, status any) error {
	err := co.apply(ctx, api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: revision, Data: api.Encode(status)})
	if c := api.CodeOf(err); c == api.CodeConflict || c == api.CodeNotFound {
		if err := co.refresh(ctx, kind, id); err != nil {
			return err
		}
		return errStale
	}
	return err
}

// refresh reads the object from the store into the cache.
func (co *core) refresh(ctx context.Context, kind api.Kind, id string) error {
	o, err := co.read(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		co.mergeChange(objects.Change{Kind: kind, ID: id})
		return nil
	}
	if err != nil {
		return err
	}
	co.mergeObject(o)
	return nil
}

// notMine reports whether, according to the store, the object does not exist or
// belongs to another node and is not being migrated to this one. The cache alone is
// never a reason to give up anything.
func (co *core) notMine(ctx context.Context, kind api.Kind, id string) (bool, *api.Object, error) {
	o, err := co.read(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return true, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	switch kind {
	case api.KindInstance:
		in, err := api.Decode[api.Instance](o)
		return err == nil && in.Assignment.Node != co.o.NodeID && !co.comesHere(api.InstanceID(id)), &o, err
	default:
		v, err := api.Decode[api.Volume](o)
		if _, mine := get(co.cache, co.cache.instances, string(v.Spec.Instance)); mine || co.comesHere(v.Spec.Instance) {
			return false, &o, err // a volume is assigned with its instance
		}
		if _, comes := co.volumeComesHere(api.VolumeID(id)); comes {
			return false, &o, err
		}
		if err != nil || v.Assignment.Node == "" || v.Assignment.Node == co.o.NodeID || v.Spec.Instance == "" {
			return err == nil && v.Assignment.Node != "" && v.Assignment.Node != co.o.NodeID, &o, err
		}
		// The instance is assigned to a node before its volume is.
		gone, _, err := co.notMine(ctx, api.KindInstance, string(v.Spec.Instance))
		return gone && err == nil, &o, err
	}
}

// comesHere reports whether the instance is being migrated to this node.
func (co *core) comesHere(id api.InstanceID) bool {
	m, ok := co.cache.migrationOf(id)
	return ok && m.Assignment.Target == co.o.NodeID && m.Status.Phase != api.MigrationFailed && m.Status.Phase != api.MigrationAborted
}

// volumeComesHere returns the migration that is moving the volume, which belongs to no
// instance, to this node.
func (co *core) volumeComesHere(id api.VolumeID) (api.Migration, bool) {
	m, ok := co.cache.migrationOfVolume(id)
	return m, ok && m.Assignment.Target == co.o.NodeID && m.Status.Phase != api.MigrationFailed && m.Status.Phase != api.MigrationAborted
}

// writeFile replaces the file atomically; it is on the disk when writeFile returns,
// unless NoSync is set.
func (o *Options) writeFile(path string, raw []byte) error {
	if o.NoSync {
		return os.WriteFile(path, raw, 0o600)
	}
	return atomicfile.WriteFile(path, raw, 0o600)
}
