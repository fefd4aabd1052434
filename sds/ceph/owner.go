package ceph

import (
	"context"
	"errors"
	"strconv"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// fenceTime that a client is shut out for: far longer than any frozen machine
// is left frozen.
const fenceTime = 30 * 24 * time.Hour

// ClaimVolume implements sds.Driver. Whoever takes a volume over from a node
// that has not released it shuts that node's clients out of the cluster: a
// QEMU that was frozen and wakes up cannot write. It is not the owner before
// that is done.
func (d *Driver) ClaimVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	unlock, err := d.lockVolume(ctx, id, o.Validate())
	if err != nil {
		return err
	}
	defer unlock()
	s, err := d.find(ctx, volumes, string(id))
	if err != nil {
		return err
	}
	if s.pending != nil {
		return api.Errorf(api.CodeState, "volume %s is being rolled back", id).WithHint("wait until that has ended")
	}
	write, err := o.Decide(id, s.claim)
	if err != nil {
		return err
	}
	if write {
		if s, err = d.write(ctx, volumes, string(id), record{Do: claim, Node: o.Node, Epoch: o.Epoch}); err != nil {
			return err
		}
		if s.made == nil {
			return volumes.notFound(string(id))
		}
		if _, err := o.Decide(id, s.claim); err != nil {
			return err // another was faster
		}
	}
	if s.fence == nil {
		return nil
	}
	if err := d.shutOut(ctx, s.made.Disk); err != nil {
		return err
	}
	_, err = d.write(ctx, volumes, string(id), record{Do: fenced, Node: s.fence.Node, Epoch: s.fence.Epoch})
	return err
}

// shutOut the clients of other nodes that have the disk open. This node's own
// are not: a machine that has moved here has it open before the claim.
func (d *Driver) shutOut(ctx context.Context, disk string) error {
	all, err := d.watchers(ctx, disk)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	for _, w := range all {
		if ip, bad := clientAddress(w); bad != nil || d.opt.Own(ip) {
			err = errors.Join(err, bad)
			continue
		}
		_, failed := d.run(ctx, nil, "ceph", "--connect-timeout", "10", "osd", "blocklist", "add", w, strconv.Itoa(int(fenceTime.Seconds())))
		err = errors.Join(err, failed)
	}
	return err
}

// ReleaseVolume implements sds.Driver.
func (d *Driver) ReleaseVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	unlock, err := d.lockVolume(ctx, id, o.Validate())
	if err != nil {
		return err
	}
	defer unlock()
	s, err := d.read(ctx, volumes, string(id))
	if err != nil || s.made == nil || s.claim == nil || s.claim.Owner != o || s.claim.Released {
		return err
	}
	_, err = d.write(ctx, volumes, string(id), record{Do: release, Node: o.Node, Epoch: o.Epoch})
	return err
}

// Owner implements sds.Driver.
func (d *Driver) Owner(ctx context.Context, id api.VolumeID) (sds.Owner, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return sds.Owner{}, err
	}
	s, err := d.find(ctx, volumes, string(id))
	if err != nil || s.claim == nil || s.claim.Released {
		return sds.Owner{}, err
	}
	return s.claim.Owner, nil
}
