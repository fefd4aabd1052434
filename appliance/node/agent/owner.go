package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// errStale ends a reconcile that was decided on old news: the cache has the
// new, decide again.
var errStale = errors.New("decided on old news")

// leaveInstance gives up what is here of an instance that is not this node's:
// it was given to another, has moved, or is unknown to the cluster.
func (a *Agent) leaveInstance(ctx context.Context, id api.InstanceID) error {
	s, err := a.o.Machines.Status(ctx, id)
	if err != nil {
		return err
	}
	if s.State == hypervisor.Missing && !exists(a.files.dir(id)) && !exists(a.meter.path(string(id))) {
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
	if err := a.ports.unplug(ctx, id); err != nil {
		return err
	}
	if err := a.meter.leave(ctx, api.KindInstance, string(id), o); err != nil {
		return err
	}
	if a.o.VGPUs != nil && exists(a.files.vgpuMark(id)) {
		if err := a.o.VGPUs.Remove(ctx, id); err != nil {
			return err
		}
	}
	r, err := a.files.readRun(id)
	a.disks.forgetKeys(ctx, r.Opens)
	if err == nil && r.Volume != "" { // made for a migration that came to nothing
		err = a.leaveVolume(ctx, string(r.Volume))
	}
	if err != nil {
		return err
	}
	return a.files.drop(id)
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

// leaveVolume deletes a volume of this node's own that another node has now, and
// after a while one that the store does not know. A shared one is left to its
// new owner.
func (a *Agent) leaveVolume(ctx context.Context, id string) error {
	local := a.pools.drivers()[api.PoolLocal]
	_, err := local.Volume(ctx, api.VolumeID(id))
	here := err == nil
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	if !here && !exists(a.meter.path(id)) {
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
	if err := a.meter.leave(ctx, api.KindVolume, id, o); err != nil {
		return err
	}
	if !here || a.perhapsOnly(o, v) && a.unknown.stays(api.PoolLocal, api.KindVolume, id) {
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
	return o == nil || v.Meta.DeletedAt == nil && a.members.removed(v.Assignment.Node)
}

// dropVolume deletes a volume that is nobody's here any more, with its
// snapshots. v is what is known of it.
func (a *Agent) dropVolume(ctx context.Context, p sds.Driver, id api.VolumeID, v api.Volume) error {
	if p.Capabilities().Snapshots {
		snapshots, err := p.Snapshots(ctx, id)
		if err != nil {
			return err
		}
		e, err := a.disks.encryption(ctx, v)
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
