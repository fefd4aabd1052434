package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/machinestate"
	"github.com/basalt-gpu/basalt/sds"
)

// snapshot creates a snapshot of the volume, or completes one. If it is the root
// volume of a machine with a state, the state is stored for the snapshot first. The
// caller holds the disks of the volume's instance.
//
// A running guest is not paused: the state is that of a moment before the disk's,
// usually less than a second. A state that is later than the disk is never stored:
// once the snapshot exists, its state does not change.
func (k *stateKeeper) snapshot(ctx context.Context, v api.Volume, p sds.Driver, id api.SnapshotID, access sds.Access) (sds.Snapshot, error) {
	ref := sds.SnapshotRef{Volume: api.VolumeID(v.Meta.ID), ID: id}
	keeper, able := p.(sds.StateKeeper)
	if able && v.Spec.Root && k.seals() {
		err := findSnapshot(ctx, p, ref)
		if api.CodeOf(err) == api.CodeNotFound {
			err = k.keepForSnapshot(ctx, v, keeper, ref)
		}
		if err != nil {
			return sds.Snapshot{}, err
		}
	}
	s, err := p.CreateSnapshot(ctx, sds.SnapshotCreate{ID: id, Volume: ref.Volume}, access)
	return s, wrap(err, "create snapshot %s of volume %s", id, ref.Volume)
}

// keepForSnapshot stores the present state of the volume's machine for a snapshot.
func (k *stateKeeper) keepForSnapshot(ctx context.Context, v api.Volume, keeper sds.StateKeeper, ref sds.SnapshotRef) error {
	raw, err := k.present(ctx, v, keeper)
	if err != nil {
		return fmt.Errorf("read the machine state for snapshot %s: %w", ref.ID, err)
	}
	if err := keeper.KeepSnapshotState(ctx, ref, raw); err != nil {
		return fmt.Errorf("store the machine state for snapshot %s: %w", ref.ID, err)
	}
	return nil
}

// present returns the newest state of the machine with the root volume, packed; nil:
// it has none.
func (k *stateKeeper) present(ctx context.Context, v api.Volume, keeper sds.StateKeeper) ([]byte, error) {
	id := api.VolumeID(v.Meta.ID)
	in, mine := get(k.cache, k.cache.instances, string(v.Spec.Instance))
	if !mine || in.Assignment.RootVolume != id { // another node's, or nobody's: it does not run here
		raw, _, err := keeper.KeptState(ctx, id)
		return raw, wrap(err, "read what is stored beside volume %s", id)
	}
	if in.Spec.Firmware != api.FirmwareUEFI {
		return nil, nil
	}
	last, err := k.files.readRun(v.Spec.Instance)
	if err != nil {
		return nil, err
	}
	kept, err := k.newer(ctx, in, last)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		return k.pack(ctx, id, *kept, true)
	}
	for try := 0; ; try++ {
		state, _, _, err := k.files.readState(in, true)
		switch {
		case errors.Is(err, os.ErrNotExist): // it was never started
			return nil, nil
		case errors.Is(err, errChanging) && try < captureTries:
			sleep(ctx, captureWait)
			continue
		case errors.Is(err, errChanging):
			return nil, errors.Join(api.Errorf(api.CodeUnavailable, "the guest is writing its UEFI variables or its TPM").WithHint("it is tried again automatically"), err)
		case err != nil:
			return nil, err
		}
		return k.pack(ctx, id, state, true)
	}
}

// A state that is being written is read again this often, and after this time.
const (
	captureTries = 10
	captureWait  = 20 * time.Millisecond
)

// ofSnapshot returns the state that was stored for a snapshot, encoded but not
// encrypted; nil: none.
func (k *stateKeeper) ofSnapshot(ctx context.Context, p sds.Driver, ref sds.SnapshotRef) ([]byte, error) {
	keeper, able := p.(sds.StateKeeper)
	if !able {
		return nil, nil
	}
	raw, err := keeper.SnapshotState(ctx, ref)
	if err != nil || raw == nil {
		return nil, wrap(err, "read the machine state of snapshot %s", ref.ID)
	}
	state, err := k.unpack(ctx, ref.Volume, raw)
	if err != nil {
		return nil, fmt.Errorf("machine state for snapshot %s: %w", ref.ID, err)
	}
	return state.Encode()
}

// dropSnapshot removes what an interrupted attempt has left for a snapshot that does
// not exist.
func (k *stateKeeper) dropSnapshot(ctx context.Context, p sds.Driver, ref sds.SnapshotRef) error {
	keeper, able := p.(sds.StateKeeper)
	if !able {
		return nil
	}
	err := keeper.KeepSnapshotState(ctx, ref, nil)
	if api.CodeOf(err) == api.CodeNotFound { // its volume is gone, too
		return nil
	}
	return wrap(err, "remove the machine state of snapshot %s", ref.ID)
}

// rollBack makes the state of the machine with the root volume that of the snapshot,
// on this node and beside the volume. A snapshot without one, such as one of an
// earlier version, leaves it as it is. The machine does not run, and is not started
// before this has succeeded.
func (k *stateKeeper) rollBack(ctx context.Context, v api.Volume, p sds.Driver, id api.SnapshotID) error {
	keeper, able := p.(sds.StateKeeper)
	ref := sds.SnapshotRef{Volume: api.VolumeID(v.Meta.ID), ID: id}
	if !able || !v.Spec.Root {
		return nil
	}
	raw, err := keeper.SnapshotState(ctx, ref)
	if err != nil || raw == nil {
		return wrap(err, "read the machine state of snapshot %s", id)
	}
	state, err := k.unpack(ctx, ref.Volume, raw)
	if err != nil {
		return fmt.Errorf("machine state for snapshot %s: %w", id, err)
	}
	_, epoch, err := keeper.KeptState(ctx, ref.Volume)
	if err != nil {
		return fmt.Errorf("read the machine state beside volume %s: %w", ref.Volume, err)
	}
	in, mine := get(k.cache, k.cache.instances, string(v.Spec.Instance))
	if mine {
		epoch = max(epoch, in.Assignment.Epoch)
		if err := k.files.writeState(in, state); err != nil {
			return err
		}
	}
	if !api.SharedPool(v.Assignment.Pool) {
		return nil
	}
	return wrap(keeper.KeepState(ctx, ref.Volume, epoch, raw), "store the machine state beside volume %s", ref.Volume)
}

// missing reports whether the root volume v, which is restored from a backup, lacks
// the state of its machine. While its state cannot be read, it does not.
func (k *stateKeeper) missing(ctx context.Context, v api.Volume, p sds.Driver) bool {
	keeper, able := p.(sds.StateKeeper)
	if !able || !v.Spec.Root || !k.seals() {
		return false
	}
	raw, _, err := keeper.KeptState(ctx, api.VolumeID(v.Meta.ID))
	return err == nil && raw == nil
}

// restored stores, beside a root volume that was restored from a backup, the state
// that the backup has, or an empty one. It is the first of the volume: the
// state of any run replaces it.
func (k *stateKeeper) restored(ctx context.Context, v api.Volume, p sds.Driver, encoded []byte) error {
	keeper, able := p.(sds.StateKeeper)
	if !able {
		return nil
	}
	var state machinestate.State
	if encoded != nil {
		var err error
		if state, err = machinestate.Decode(encoded); err != nil {
			return fmt.Errorf("machine state in backup %s: %w", v.Spec.Backup, err)
		}
	}
	raw, err := k.pack(ctx, api.VolumeID(v.Meta.ID), state, true)
	if err == nil {
		err = keeper.KeepState(ctx, api.VolumeID(v.Meta.ID), restoredEpoch, raw)
	}
	return wrap(err, "store the machine state of backup %s beside volume %s", v.Spec.Backup, v.Meta.ID)
}
