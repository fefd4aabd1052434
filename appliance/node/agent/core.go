package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// errStale ends a reconcile that was decided on old news: the cache has the
// new, decide again.
var errStale = errors.New("the object has changed since the decision")

// core is what every reconciler and every periodic duty of the agent needs: the
// options, the cache of the store, the pools, and the ways to write to the store.
type core struct {
	o     Options
	log   *slog.Logger
	cache *cache
	jobs  *jobs

	kick    func(key string)    // asks for a key to be reconciled soon
	changed func(keys []string) // tells the fence, then asks for the keys to be reconciled

	pools   *poolSet
	members *membership
	files   *instanceFiles
}

func newCore(o Options) *core {
	c := &core{o: o, log: o.Log.With("node", o.NodeName), cache: newCache(o.NodeID)}
	c.jobs = newJobs(c)
	c.pools = newPoolSet(o.Pools)
	c.members = &membership{node: o.NodeID, cache: c.cache}
	c.files = &instanceFiles{o: &c.o}
	return c
}

// takeChange takes in an object that the store has answered, or (Now is nil) that it has
// not any more.
func (co *core) takeChange(c objects.Change) { co.changed(co.cache.apply(c)) }

// takeObject takes in an object that the store has answered.
func (co *core) takeObject(o api.Object) {
	if c, ok := decoded(o); ok {
		co.takeChange(c)
	}
}

// apply commits commands and takes their outcome into the cache at once, so
// that the next step does not decide on old news.
func (co *core) apply(ctx context.Context, cmds ...api.Command) error {
	objects, err := co.o.Store.Apply(ctx, api.Batch{At: co.o.Now().UTC(), Commands: cmds})
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Kind == api.KindNode {
			co.takeObject(o) // written on any revision: it may bring what others decided
		} else if c, ok := decoded(o); ok {
			co.cache.apply(c) // what this node just said is no news
		}
	}
	return nil
}

// forget takes the agent's finalizer off: nothing of the object is left here.
func (co *core) forget(ctx context.Context, kind api.Kind, id string) error {
	_, err := co.o.Store.Apply(ctx, api.Batch{At: co.o.Now().UTC(), Commands: []api.Command{
		{Op: api.OpForget, Kind: kind, ID: id, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent}}})
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return err
}

// report writes a status on the revision that it was decided on: what another
// node says of what is its own now is never overwritten.
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

// refresh the cache from the store.
func (co *core) refresh(ctx context.Context, kind api.Kind, id string) error {
	o, err := co.o.Store.Get(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		co.takeChange(objects.Change{Kind: kind, ID: id})
		return nil
	}
	if err != nil {
		return err
	}
	co.takeObject(o)
	return nil
}

// notMine is true when the store says that the object does not exist or is
// another node's, and that it does not come here by a migration. Nothing is
// given up on the cache's word alone.
func (co *core) notMine(ctx context.Context, kind api.Kind, id string) (bool, *api.Object, error) {
	o, err := co.o.Store.Get(ctx, kind, id)
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
			return false, &o, err // it follows its instance
		}
		if err != nil || v.Assignment.Node == "" || v.Assignment.Node == co.o.NodeID || v.Spec.Instance == "" {
			return err == nil && v.Assignment.Node != "" && v.Assignment.Node != co.o.NodeID, &o, err
		}
		// Its instance is given to a node before it is.
		gone, _, err := co.notMine(ctx, api.KindInstance, string(v.Spec.Instance))
		return gone && err == nil, &o, err
	}
}

// comesHere reports whether the instance is on its way here.
func (co *core) comesHere(id api.InstanceID) bool {
	m, ok := co.cache.migrationOf(id)
	return ok && m.Assignment.Target == co.o.NodeID && m.Status.Phase != api.MigrationFailed && m.Status.Phase != api.MigrationAborted
}

// writeFile replaces the file whole, on the disk when it returns.
func (o *Options) writeFile(path string, raw []byte) error {
	if o.NoSync {
		return os.WriteFile(path, raw, 0o600)
	}
	return atomicfile.WriteFile(path, raw, 0o600)
}
