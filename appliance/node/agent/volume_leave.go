package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// leave deletes from this node's own pools a volume that another node has now, and,
// after a while, one that the store does not have. A volume in a shared pool is
// left to its new owner.
func (rec *volumeReconciler) leave(ctx context.Context, id string) error {
	name, own, err := rec.ownPoolWith(ctx, api.VolumeID(id))
	if err != nil {
		return err
	}
	here := own != nil
	if !here && !exists(rec.meter.path(id)) {
		return nil
	}
	gone, o, err := rec.notMine(ctx, api.KindVolume, id)
	if err != nil || !gone {
		return err
	}
	var v api.Volume
	if o != nil {
		if v, err = api.Decode[api.Volume](*o); err != nil {
			return err
		}
		if rec.inUse(ctx, v) {
			return api.Errorf(api.CodeInUse, "volume %s is still in use on this node", id)
		}
	}
	if err := rec.meter.leave(ctx, api.KindVolume, id, o); err != nil {
		return err
	}
	if !here || rec.perhapsOnly(o, v) && rec.retention.stays(name, api.KindVolume, id) {
		return nil
	}
	rec.log.Warn("removing volume that belongs to another node", "id", id)
	if err := rec.drop(ctx, own, api.VolumeID(id), v); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	return nil
}

// ownPoolWith returns the name and driver of the node's own pool that has the
// volume, or nil if none has.
func (rec *volumeReconciler) ownPoolWith(ctx context.Context, id api.VolumeID) (string, sds.Driver, error) {
	for name, p := range rec.pools.inOrder() {
		if rec.pools.shared(name) {
			continue
		}
		if _, err := findVolume(ctx, p, id); err == nil {
			return name, p, nil
		} else if api.CodeOf(err) != api.CodeNotFound {
			return "", nil, err
		}
	}
	return "", nil, nil
}

// perhapsOnly reports whether the copy of the volume in this node's own pool may be
// the only one: the store does not have the volume, or has it on a node that was
// removed. v is the decoded o.
func (rec *volumeReconciler) perhapsOnly(o *api.Object, v api.Volume) bool {
	return o == nil || v.Meta.DeletedAt == nil && rec.members.removed(v.Assignment.Node)
}

// drop deletes a volume that is not this node's any more, with its snapshots. v is
// what is known of it.
func (rec *volumeReconciler) drop(ctx context.Context, p sds.Driver, id api.VolumeID, v api.Volume) error {
	if m, ok := p.(sds.Mover); ok && !p.Capabilities().Shared {
		return wrap(m.DiscardVolume(ctx, id), "delete volume %s", id)
	}
	if p.Capabilities().Snapshots {
		snapshots, err := p.Snapshots(ctx, id)
		if err != nil {
			return fmt.Errorf("list the snapshots of volume %s: %w", id, err)
		}
		e, err := rec.disks.encryption(ctx, v)
		if err != nil {
			return err
		}
		for _, s := range slices.Backward(snapshots) {
			if err := deleteSnapshot(ctx, p, sds.SnapshotRef{Volume: id, ID: s.ID}, sds.Access{Encryption: e}); err != nil {
				return err
			}
		}
	}
	return wrap(p.DeleteVolume(ctx, id), "delete volume %s", id)
}
