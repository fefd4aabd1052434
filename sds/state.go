package sds

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// MaxStateBytes is the maximum size of a volume's state.
const MaxStateBytes = 64 << 10

// StateKeeper is a shared Driver that stores, with a volume, the state of the
// volume's machine that is on no disk: its UEFI variables.
type StateKeeper interface {
	// KeepState stores the state of the machine in a run of the epoch, instead of
	// that of earlier ones. A later call with an older epoch changes nothing.
	// too_large for more than MaxStateBytes. The state is deleted with the
	// volume.
	KeepState(ctx context.Context, v api.VolumeID, epoch int64, state []byte) error
	// KeptState returns the state stored in the highest epoch; nil: none.
	KeptState(ctx context.Context, v api.VolumeID) (state []byte, epoch int64, err error)
}

// CheckState returns what is wrong with a state to store: an *api.Error, or
// nil.
func CheckState(v api.VolumeID, epoch int64, state []byte) error {
	if err := CheckID(string(v)); err != nil {
		return err
	}
	if epoch < 0 || len(state) == 0 || len(state) > MaxStateBytes {
		return api.Errorf(api.CodeTooLarge, "state of volume %s of %d bytes in epoch %d, want 1 to %d bytes", v, len(state), epoch, MaxStateBytes)
	}
	return nil
}
