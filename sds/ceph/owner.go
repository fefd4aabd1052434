package ceph

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// fenceTime is how long a client is blocklisted: much longer than a machine
// stays frozen.
const fenceTime = 30 * 24 * time.Hour

// ClaimVolume implements sds.Driver. A node that takes a volume over from one
// that has not released it blocklists that node's clients: a QEMU that was
// frozen and resumes cannot write. It is not the owner before that is done. A
// claim by the owner itself, when its machine has the disk open and has not
// written yet, records which clients these are.
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
		return api.Errorf(api.CodeState, "volume %s is being rolled back", id).WithHint("wait until that has finished")
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
			return err // another claim was first
		}
	}
	if s.fence != nil {
		if err := d.fenceClients(ctx, s.made.Disk, o.Node, s.clients); err != nil {
			return err
		}
		if s, err = d.write(ctx, volumes, string(id), record{Do: fenced, Node: s.fence.Node, Epoch: s.fence.Epoch}); err != nil {
			return err
		}
	}
	return d.record(ctx, id, o, s)
}

// record records this node's clients that have the disk open.
func (d *Driver) record(ctx context.Context, id api.VolumeID, o sds.Owner, s state) error {
	if s.made == nil {
		return volumes.notFound(string(id))
	}
	all, err := d.watchers(ctx, s.made.Disk)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	for _, w := range all {
		if ip, bad := clientAddress(w); bad != nil || !d.opt.Own(ip) || slices.Contains(s.clients, client{o.Node, w}) {
			err = errors.Join(err, bad)
			continue
		}
		_, failed := d.write(ctx, volumes, string(id), record{Do: opened, Node: o.Node, Epoch: o.Epoch, Client: w})
		err = errors.Join(err, failed)
	}
	return err
}

// fenceClients blocklists the clients of other nodes that have, or had, the
// disk open: those that watch it, that hold its lock, and that the log names.
// The watch of a frozen client expires after 30 s, but it keeps the lock that
// it acquired at its first write; one that has never written has neither. This
// node's own clients are excluded: a machine that was migrated to this node
// has the disk open before the claim.
func (d *Driver) fenceClients(ctx context.Context, disk string, node api.NodeID, known []client) error {
	all, err := d.watchers(ctx, disk)
	lockers, lockErr := d.lockers(ctx, disk)
	if command.Is(err, syscall.ENOENT) || command.Is(lockErr, syscall.ENOENT) {
		return nil
	}
	err = errors.Join(err, lockErr)
	all = append(all, lockers...)
	for _, c := range known {
		if c.Node != node {
			all = append(all, c.Address)
		}
	}
	slices.Sort(all)
	for _, w := range slices.Compact(all) {
		if ip, bad := clientAddress(w); bad != nil || d.opt.Own(ip) {
			err = errors.Join(err, bad)
			continue
		}
		_, failed := d.run(ctx, nil, "ceph", "osd", "blocklist", "add", w, strconv.Itoa(int(fenceTime.Seconds())))
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
