package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// freezeTimeout is how long a guest may take to write out its cached data; after
// that the snapshot is taken without its help, in the state that a power cut would
// leave.
const freezeTimeout = 10 * time.Second

// thawTimeout limits one attempt; thawing a frozen guest is repeated until it
// succeeds.
const thawTimeout = 10 * time.Second

// live is a volume that a running machine has open. It implements sds.Live.
type live struct {
	disks *diskSet
	id    api.InstanceID
	disk  disk
}

// access returns what a storage driver needs to access the volume. The caller holds
// the disks of the instance that may have it open.
func (ds *diskSet) access(ctx context.Context, v api.Volume) (sds.Access, error) {
	e, err := ds.encryption(ctx, v)
	if err != nil {
		return sds.Access{}, err
	}
	access := sds.Access{Encryption: e}
	open, id, err := ds.opener(ctx, v)
	if err != nil || !open {
		return access, err
	}
	k, err := ds.find(ctx, v)
	if err != nil {
		return access, err
	}
	access.Live = live{ds, id, k}
	return access, nil
}

// opener reports whether a running machine has the volume open. id is the instance
// that has it open or may open it, or empty.
func (ds *diskSet) opener(ctx context.Context, v api.Volume) (open bool, id api.InstanceID, err error) {
	id = v.Status.Attached
	if v.Spec.Root {
		id = v.Spec.Instance
	}
	if id == "" {
		return false, "", nil
	}
	s, err := ds.domain.status(ctx, id)
	if err != nil || !s.State.Active() {
		return false, id, err
	}
	disks, err := ds.domain.disks(ctx, id)
	if err != nil {
		return false, id, err
	}
	return hasDisk(disks, serialOf(v)) != nil, id, nil
}

func hasDisk(disks []hypervisor.OpenDisk, serial string) *hypervisor.OpenDisk {
	for i := range disks {
		if disks[i].Serial == serial {
			return &disks[i]
		}
	}
	return nil
}

// Overlay implements sds.Live.
func (l live) Overlay(ctx context.Context, path string) error {
	return l.disks.freezer.frozen(ctx, l.id, func() error {
		return l.disks.withSecrets(ctx, []disk{l.disk}, func() error {
			return wrap(l.disks.o.Machines.SnapshotDisk(ctx, l.id, l.disk.Serial, path), "add layer %s to disk %s of instance %s", path, l.disk.Serial, l.id)
		})
	})
}

// Commit implements sds.Live.
func (l live) Commit(ctx context.Context, top, base string) error {
	return l.disks.withSecrets(ctx, []disk{l.disk}, func() error {
		return wrap(l.disks.o.Machines.CommitDisk(ctx, l.id, l.disk.Serial, top, base), "merge layers of disk %s of instance %s", l.disk.Serial, l.id)
	})
}

// Resize implements sds.Live.
func (l live) Resize(ctx context.Context, bytes int64) error {
	return wrap(l.disks.o.Machines.ResizeDisk(ctx, l.id, l.disk.Serial, bytes), "grow disk %s of instance %s to %d bytes", l.disk.Serial, l.id, bytes)
}

// freezer freezes and thaws the file systems of guests.
type freezer struct {
	*core
	disks *diskSet
}

// frozen runs f while the guest's file systems are frozen, if the guest has an
// agent. A mark on the disk outlives this process: a guest that may have been
// frozen is thawed in any case, now or by a later reconcile.
func (z *freezer) frozen(ctx context.Context, id api.InstanceID, f func() error) error {
	freezing, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	if err := z.o.Machines.AgentPing(freezing, id); err != nil {
		z.log.Info("taking snapshot without freezing the guest", "instance", id, "error", err)
		return f()
	}
	if err := z.o.writeFile(z.files.frozenMark(id), nil); err != nil {
		return err
	}
	if _, err := z.o.Machines.Freeze(freezing, id); err != nil {
		z.log.Info("taking snapshot without freezing the guest", "instance", id, "error", err)
	}
	err := f()
	// The guest is thawed after a failed freeze too: it may have frozen later.
	if thawed := z.thaw(context.WithoutCancel(ctx), id); thawed != nil {
		z.log.Warn("thaw guest failed, will try again", "instance", id, "error", thawed)
		z.trigger(key(api.KindInstance, string(id)))
	}
	return err
}

// thaw thaws a guest that may be frozen, and removes the mark.
func (z *freezer) thaw(ctx context.Context, id api.InstanceID) error {
	ctx, cancel := context.WithTimeout(ctx, thawTimeout)
	defer cancel()
	if err := z.o.Machines.Thaw(ctx, id); err != nil {
		return fmt.Errorf("thaw the file systems of instance %s: %w", id, err)
	}
	return remove(z.files.frozenMark(id))
}

// thawLeftoverFreezes thaws a guest that an earlier process of the agent has left frozen.
func (z *freezer) thawLeftoverFreezes(ctx context.Context, id api.InstanceID) {
	if _, err := os.Stat(z.files.frozenMark(id)); err != nil {
		return
	}
	release, err := z.disks.acquire(id)
	if err != nil {
		return // a snapshot is being taken
	}
	defer release()
	if err := z.thaw(ctx, id); err != nil {
		z.log.Warn("thaw guest failed, will try again", "instance", id, "error", err)
	}
}

// withVolume calls f while no other step starts, migrates or changes the machine
// that may have the volume open. It returns errLater if one does.
func (ds *diskSet) withVolume(ctx context.Context, v api.Volume, f func(sds.Access) error) error {
	_, holder, err := ds.opener(ctx, v)
	if err != nil {
		return err
	}
	release, err := ds.acquireVolume(api.VolumeID(v.Meta.ID), holder)
	if err != nil {
		return err
	}
	defer release()
	access, err := ds.access(ctx, v)
	if err != nil {
		return err
	}
	return f(access)
}
