package ceph

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// The state of a volume is in the omap of the object with its log, under a key
// that ends with the epoch: it is removed with the log, and a node writes only
// the key of its own epoch.
const statePrefix = "state."

// The states for snapshots are there, too, under keys that end with the
// snapshot's ID.
const snapStatePrefix = "snapstate."

func stateKey(epoch int64) string { return fmt.Sprintf("%s%020d", statePrefix, epoch) }

// KeepState implements sds.StateKeeper.
func (d *Driver) KeepState(ctx context.Context, id api.VolumeID, epoch int64, state []byte) error {
	if err := sds.CheckState(id, epoch, state); err != nil {
		return err
	}
	if _, err := d.find(ctx, volumes, string(id)); err != nil {
		return err
	}
	object := volumes.object(string(id))
	if _, err := d.rados(ctx, nil, "setomapval", object, stateKey(epoch), base64.StdEncoding.EncodeToString(state)); err != nil {
		return err
	}
	epochs, err := d.stateEpochs(ctx, id)
	for _, e := range epochs {
		if e < epochs[len(epochs)-1] {
			if _, gone := d.rados(ctx, nil, "rmomapkey", object, stateKey(e)); !command.Is(gone, syscall.ENOENT) {
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// KeptState implements sds.StateKeeper.
func (d *Driver) KeptState(ctx context.Context, id api.VolumeID) (state []byte, epoch int64, err error) {
	if err := sds.CheckID(string(id)); err != nil {
		return nil, 0, err
	}
	if _, err := d.find(ctx, volumes, string(id)); err != nil {
		return nil, 0, err
	}
	epochs, err := d.stateEpochs(ctx, id)
	if err != nil || len(epochs) == 0 {
		return nil, 0, err
	}
	epoch = epochs[len(epochs)-1]
	if state, err = d.readState(ctx, id, stateKey(epoch)); err != nil {
		return nil, 0, err
	}
	return state, epoch, nil
}

// readState returns the state under a key of the volume's omap.
func (d *Driver) readState(ctx context.Context, id api.VolumeID, key string) ([]byte, error) {
	raw, err := d.rados(ctx, nil, "getomapval", volumes.object(string(id)), key, "/dev/stdout")
	if err != nil {
		return nil, err
	}
	text, _, _ := strings.Cut(string(raw), "\n") // some versions also print where they wrote it
	state, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "Writing to /dev/stdout"))
	if err != nil {
		return nil, fmt.Errorf("state %s of volume %s is damaged: %w", key, id, err)
	}
	if len(state) > sds.MaxStateBytes {
		return nil, fmt.Errorf("state %s of volume %s has %d bytes, want at most %d", key, id, len(state), sds.MaxStateBytes)
	}
	return state, nil
}

// KeepSnapshotState implements sds.StateKeeper.
func (d *Driver) KeepSnapshotState(ctx context.Context, ref sds.SnapshotRef, state []byte) error {
	if err := sds.CheckSnapshotState(ref, state); err != nil {
		return err
	}
	if _, err := d.find(ctx, volumes, string(ref.Volume)); err != nil {
		return err
	}
	if len(state) == 0 {
		return d.dropSnapshotState(ctx, ref)
	}
	_, err := d.rados(ctx, nil, "setomapval", volumes.object(string(ref.Volume)), snapStatePrefix+string(ref.ID), base64.StdEncoding.EncodeToString(state))
	return err
}

// SnapshotState implements sds.StateKeeper.
func (d *Driver) SnapshotState(ctx context.Context, ref sds.SnapshotRef) ([]byte, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	if _, err := d.find(ctx, volumes, string(ref.Volume)); err != nil {
		return nil, err
	}
	keys, err := d.stateKeys(ctx, ref.Volume)
	if err != nil || !slices.Contains(keys, snapStatePrefix+string(ref.ID)) {
		return nil, err
	}
	return d.readState(ctx, ref.Volume, snapStatePrefix+string(ref.ID))
}

// dropSnapshotState removes the state for a snapshot, if there is one.
func (d *Driver) dropSnapshotState(ctx context.Context, ref sds.SnapshotRef) error {
	_, err := d.rados(ctx, nil, "rmomapkey", volumes.object(string(ref.Volume)), snapStatePrefix+string(ref.ID))
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// stateKeys returns the keys of the volume's omap, sorted.
func (d *Driver) stateKeys(ctx context.Context, id api.VolumeID) ([]string, error) {
	raw, err := d.rados(ctx, nil, "listomapkeys", volumes.object(string(id)))
	return strings.Fields(string(raw)), err
}

// stateEpochs returns the epochs of the volume's states, ascending: rados
// lists keys sorted.
func (d *Driver) stateEpochs(ctx context.Context, id api.VolumeID) (epochs []int64, err error) {
	keys, err := d.stateKeys(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		digits, ok := strings.CutPrefix(key, statePrefix)
		if epoch, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && stateKey(epoch) == key {
			epochs = append(epochs, epoch)
		}
	}
	return epochs, nil
}
