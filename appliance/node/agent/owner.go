package agent

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/billing/meter"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// errStale ends a reconcile that was decided on old news: the cache has the
// new, decide again.
var errStale = errors.New("decided on old news")

// report writes a status on the revision that it was decided on: what another
// node says of what is its own now is never overwritten.
func (a *Agent) report(ctx context.Context, kind api.Kind, id string, revision int64, status any) error {
	err := a.apply(ctx, api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: revision, Data: api.Encode(status)})
	if c := api.CodeOf(err); c == api.CodeConflict || c == api.CodeNotFound {
		if err := a.refresh(ctx, kind, id); err != nil {
			return err
		}
		return errStale
	}
	return err
}

// refresh the cache from the store.
func (a *Agent) refresh(ctx context.Context, kind api.Kind, id string) error {
	o, err := a.o.Store.Get(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		a.takeChange(objects.Change{Kind: kind, ID: id})
		return nil
	}
	if err != nil {
		return err
	}
	a.takeObject(o)
	return nil
}

// notMine is true when the store says that the object does not exist or is
// another node's, and that it does not come here by a migration. Nothing is
// given up on the cache's word alone.
func (a *Agent) notMine(ctx context.Context, kind api.Kind, id string) (bool, *api.Object, error) {
	o, err := a.o.Store.Get(ctx, kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return true, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	switch kind {
	case api.KindInstance:
		in, err := api.Decode[api.Instance](o)
		return err == nil && in.Assignment.Node != a.o.NodeID && !a.incoming(api.InstanceID(id)), &o, err
	default:
		v, err := api.Decode[api.Volume](o)
		if _, mine := get(a.cache, a.cache.instances, string(v.Spec.Instance)); mine || a.incoming(v.Spec.Instance) {
			return false, &o, err // it follows its instance
		}
		if err != nil || v.Assignment.Node == "" || v.Assignment.Node == a.o.NodeID || v.Spec.Instance == "" {
			return err == nil && v.Assignment.Node != "" && v.Assignment.Node != a.o.NodeID, &o, err
		}
		// Its instance is given to a node before it is.
		gone, _, err := a.notMine(ctx, api.KindInstance, string(v.Spec.Instance))
		return gone && err == nil, &o, err
	}
}

// incoming says whether the instance is on its way here.
func (a *Agent) incoming(id api.InstanceID) bool {
	m, ok := a.cache.migrationOf(id)
	return ok && m.Assignment.Target == a.o.NodeID && m.Status.Phase != api.MigrationFailed && m.Status.Phase != api.MigrationAborted
}

// leaveInstance gives up what is here of an instance that is not this node's:
// it was given to another, has moved, or is unknown to the cluster.
func (a *Agent) leaveInstance(ctx context.Context, id api.InstanceID) error {
	s, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return err
	}
	if s.State == hypervisor.Missing && !exists(a.filesOf(id)) && !exists(a.usagePath(string(id))) {
		return nil
	}
	gone, o, err := a.notMine(ctx, api.KindInstance, string(id))
	if err != nil || !gone {
		return err
	}
	a.log.Warn("giving up an instance that is not this node's", "id", id, "state", s.State)
	if err := a.destroy(ctx, id, s.State); err != nil {
		return err
	}
	if err := a.o.Machines.Undefine(ctx, id); err != nil {
		return err
	}
	if err := a.unplug(ctx, id); err != nil {
		return err
	}
	if err := a.leaveUsage(ctx, api.KindInstance, string(id), o); err != nil {
		return err
	}
	if a.o.VGPUs != nil && exists(a.vgpuMark(id)) {
		if err := a.o.VGPUs.Remove(ctx, id); err != nil {
			return err
		}
	}
	r, err := a.readRun(id)
	a.forgetKeys(ctx, r.Opens)
	if err == nil && r.Volume != "" { // made for a migration that came to nothing
		err = a.leaveVolume(ctx, string(r.Volume))
	}
	if err != nil {
		return err
	}
	return a.dropFiles(id)
}

// destroy ends the domain, whatever it is doing.
func (a *Agent) destroy(ctx context.Context, id api.InstanceID, s hypervisor.State) error {
	if a.o.Migrator != nil && (s == hypervisor.Incoming || s == hypervisor.Missing) {
		if err := a.o.Migrator.DiscardMigration(ctx, id); err != nil {
			return err
		}
	}
	if !s.Active() {
		return nil
	}
	return a.o.Machines.Destroy(ctx, id)
}

func (a *Agent) dropFiles(id api.InstanceID) error {
	return errors.Join(os.RemoveAll(a.runOf(id)), os.RemoveAll(a.filesOf(id)))
}

// leaveVolume deletes a volume of this node's own that another node has now, and
// after a while one that the store does not know. A shared one is left to its
// new owner.
func (a *Agent) leaveVolume(ctx context.Context, id string) error {
	local := a.drivers()[api.PoolLocal]
	_, err := local.Volume(ctx, api.VolumeID(id))
	here := err == nil
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	if !here && !exists(a.usagePath(id)) {
		return nil
	}
	gone, o, err := a.notMine(ctx, api.KindVolume, id)
	if err != nil || !gone {
		return err
	}
	var v api.Volume
	if o != nil {
		if v, err = api.Decode[api.Volume](*o); err != nil {
			return err
		}
		if a.inUse(ctx, v) {
			return api.Errorf(api.CodeInUse, "volume %s is still open here", id)
		}
	}
	if err := a.leaveUsage(ctx, api.KindVolume, id, o); err != nil {
		return err
	}
	if !here || a.perhapsOnly(o, v) && a.stays(api.PoolLocal, api.KindVolume, id) {
		return nil
	}
	a.log.Warn("removing a volume that is not this node's", "id", id)
	if err := a.dropVolume(ctx, local, api.VolumeID(id), v); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	return nil
}

// perhapsOnly says whether the copy of the volume in this node's own pool may be
// the only one: the store does not know the volume, or has it on a node that is
// not there any more. v is what o holds.
func (a *Agent) perhapsOnly(o *api.Object, v api.Volume) bool {
	return o == nil || v.Meta.DeletedAt == nil && a.removed(v.Assignment.Node)
}

// dropVolume deletes a volume that is nobody's here any more, with its
// snapshots. v is what is known of it.
func (a *Agent) dropVolume(ctx context.Context, p sds.Driver, id api.VolumeID, v api.Volume) error {
	if p.Capabilities().Snapshots {
		snapshots, err := p.Snapshots(ctx, id)
		if err != nil {
			return err
		}
		e, err := a.encryption(ctx, v)
		if err != nil {
			return err
		}
		for _, s := range slices.Backward(snapshots) {
			if err := p.DeleteSnapshot(ctx, id, s.ID, sds.Access{Encryption: e}); err != nil {
				return err
			}
		}
	}
	return p.DeleteVolume(ctx, id)
}

// leaveUsage records the last use here of what is another's: until it was
// given to it, if this node was there to see that, else until last time.
func (a *Agent) leaveUsage(ctx context.Context, kind api.Kind, id string, o *api.Object) error {
	if !exists(a.usagePath(id)) {
		return nil
	}
	last := meter.Observation{At: a.cache.leftAt(key(kind, id))}
	if o == nil { // nobody would pay: only what was counted before
		return a.closeUsage(ctx, meter.Resource{ID: id}, nil)
	}
	if kind == api.KindInstance {
		if ran := a.ranUntil(api.InstanceID(id)); ran.IsZero() || ran.Before(last.At) {
			last.At = ran
		}
		totals, err := a.totals(ctx, api.InstanceID(id))
		if err != nil {
			return err
		}
		last.Totals = totals
	}
	return a.closeUsage(ctx, a.resource(o.Meta), &last)
}
