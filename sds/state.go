package sds

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// MaxStateBytes is the maximum size of a volume's state.
const MaxStateBytes = 64 << 10

// StateKeeper is a Driver that stores, with a root volume, the state of the
// volume's machine that is on no disk: its UEFI variables and its TPM. The
// content is the caller's, which seals it.
type StateKeeper interface {
	// KeepState stores the state of the machine in a run of the epoch, instead of
	// that of earlier ones. A later call with an older epoch changes nothing.
	// too_large for more than MaxStateBytes. The state is deleted with the
	// volume.
	KeepState(ctx context.Context, v api.VolumeID, epoch int64, state []byte) error
	// KeptState returns the state stored in the highest epoch; nil: none.
	KeptState(ctx context.Context, v api.VolumeID) (state []byte, epoch int64, err error)

	// KeepSnapshotState stores the state of the machine at the time of a snapshot
	// of its volume, instead of an earlier one, before the snapshot is created: a
	// snapshot never has a later state than its content. An empty state removes
	// it. It is deleted with the snapshot, and with the volume.
	KeepSnapshotState(ctx context.Context, s SnapshotRef, state []byte) error
	// SnapshotState returns the state stored for a snapshot; nil: none.
	SnapshotState(ctx context.Context, s SnapshotRef) ([]byte, error)
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

// CheckSnapshotState returns what is wrong with a state to store for a snapshot:
// an *api.Error, or nil.
func CheckSnapshotState(s SnapshotRef, state []byte) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if len(state) > MaxStateBytes {
		return api.Errorf(api.CodeTooLarge, "state of snapshot %s of %d bytes, want at most %d bytes", s.ID, len(state), MaxStateBytes)
	}
	return nil
}
