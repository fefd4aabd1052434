package sds

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// MaxStateBytes of what is kept beside a volume.
const MaxStateBytes = 64 << 10

// StateKeeper is a shared Driver that keeps, beside a volume, what the volume's machine
// has that is on no disk: its UEFI variables.
type StateKeeper interface {
	// KeepState keeps the state that the machine has in a run of the epoch, in place of
	// that of earlier ones. What a node with an older epoch keeps later changes nothing.
	// too_large for more than MaxStateBytes. It goes with the volume.
	KeepState(ctx context.Context, v api.VolumeID, epoch int64, state []byte) error
	// KeptState returns what was kept in the highest epoch; nil: nothing was.
	KeptState(ctx context.Context, v api.VolumeID) (state []byte, epoch int64, err error)
}

// CheckState returns what is wrong with a state to keep: an *api.Error, or nil.
func CheckState(v api.VolumeID, epoch int64, state []byte) error {
	if err := CheckID(string(v)); err != nil {
		return err
	}
	if epoch < 0 || len(state) == 0 || len(state) > MaxStateBytes {
		return api.Errorf(api.CodeTooLarge, "state of volume %s of %d bytes in epoch %d, want 1 to %d bytes", v, len(state), epoch, MaxStateBytes)
	}
	return nil
}
