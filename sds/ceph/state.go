package ceph

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
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
	raw, err := d.rados(ctx, nil, "getomapval", volumes.object(string(id)), stateKey(epoch), "/dev/stdout")
	if err != nil {
		return nil, 0, err
	}
	text, _, _ := strings.Cut(string(raw), "\n") // some versions also print where they wrote it
	if state, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "Writing to /dev/stdout")); err != nil || len(state) > sds.MaxStateBytes {
		return nil, 0, fmt.Errorf("state of volume %s in epoch %d is damaged: %w", id, epoch, err)
	}
	return state, epoch, nil
}

// stateEpochs returns the epochs of the volume's states, ascending: rados
// lists keys sorted.
func (d *Driver) stateEpochs(ctx context.Context, id api.VolumeID) (epochs []int64, err error) {
	raw, err := d.rados(ctx, nil, "listomapkeys", volumes.object(string(id)))
	if err != nil {
		return nil, err
	}
	for _, key := range strings.Fields(string(raw)) {
		digits, ok := strings.CutPrefix(key, statePrefix)
		if epoch, err := strconv.ParseInt(digits, 10, 64); ok && err == nil && stateKey(epoch) == key {
			epochs = append(epochs, epoch)
		}
	}
	return epochs, nil
}
