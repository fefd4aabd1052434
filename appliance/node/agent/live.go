package agent

import (
	"context"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// freezeTimeout is how long a guest may take to write out what it holds; then
// the snapshot is made without its help, as of a power cut.
const freezeTimeout = 10 * time.Second

// thawTimeout bounds one try; a guest that was frozen is thawed until it says
// that it is.
const thawTimeout = 10 * time.Second

// live is a volume that a running machine has open. It implements sds.Live.
type live struct {
	disks *diskSet
	id    api.InstanceID
	disk  disk
}

// access to the volume for a storage driver. The caller holds the disks of the
// instance that may have it open.
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

// opener reports whether a running machine has the volume open, and which it is or
// would be.
func (ds *diskSet) opener(ctx context.Context, v api.Volume) (open bool, id api.InstanceID, err error) {
	id = v.Status.Attached
	if v.Spec.Root {
		id = v.Spec.Instance
	}
	if id == "" {
		return false, "", nil
	}
	s, err := ds.o.Machines.Status(ctx, id)
	if err != nil || !s.State.Active() {
		return false, id, err
	}
	disks, err := ds.o.Machines.Disks(ctx, id)
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
			return l.disks.o.Machines.SnapshotDisk(ctx, l.id, l.disk.Serial, path)
		})
	})
}

// Commit implements sds.Live.
func (l live) Commit(ctx context.Context, top, base string) error {
	return l.disks.withSecrets(ctx, []disk{l.disk}, func() error {
		return l.disks.o.Machines.CommitDisk(ctx, l.id, l.disk.Serial, top, base)
	})
}

// Resize implements sds.Live.
func (l live) Resize(ctx context.Context, bytes int64) error {
	return l.disks.o.Machines.ResizeDisk(ctx, l.id, l.disk.Serial, bytes)
}

// freezer freezes and thaws the file systems of guests.
type freezer struct {
	*core
	disks *diskSet
}

// frozen runs f while the guest's file systems are frozen, if the guest has an
// agent. A mark on the disk outlives this process: whatever happens, a guest
// that may have been frozen is thawed, now or at the next look at it.
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
	// Also when it could not freeze: it may have done so later.
	if thawed := z.thaw(context.WithoutCancel(ctx), id); thawed != nil {
		z.log.Warn("thaw guest failed, will try again", "instance", id, "error", thawed)
		z.kick(key(api.KindInstance, string(id)))
	}
	return err
}

// thaw a guest that may be frozen.
func (z *freezer) thaw(ctx context.Context, id api.InstanceID) error {
	ctx, cancel := context.WithTimeout(ctx, thawTimeout)
	defer cancel()
	if err := z.o.Machines.Thaw(ctx, id); err != nil {
		return err
	}
	return remove(z.files.frozenMark(id))
}

// thawLeft thaws a guest that an earlier life of this process has frozen.
func (z *freezer) thawLeft(ctx context.Context, id api.InstanceID) {
	if _, err := os.Stat(z.files.frozenMark(id)); err != nil {
		return
	}
	release, err := z.disks.acquire(id)
	if err != nil {
		return // a snapshot is being made
	}
	defer release()
	if err := z.thaw(ctx, id); err != nil {
		z.log.Warn("thaw guest failed, will try again", "instance", id, "error", err)
	}
}

// withVolume calls f while nobody starts, moves or changes the machine that may
// have the volume open.
func (ds *diskSet) withVolume(ctx context.Context, v api.Volume, f func(sds.Access) error) error {
	_, holder, err := ds.opener(ctx, v)
	if err != nil {
		return err
	}
	if holder != "" {
		if _, moving := ds.migrations.moving(holder); moving {
			return errLater
		}
		release, err := ds.acquire(holder)
		if err != nil {
			return err
		}
		defer release()
	}
	access, err := ds.access(ctx, v)
	if err != nil {
		return err
	}
	return f(access)
}
