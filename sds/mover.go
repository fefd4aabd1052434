package sds

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Mover is a Driver of storage that belongs to one node and copies closed volumes to
// other nodes' pools, with their snapshots and the states of their machines
// (StateKeeper). What is encrypted is copied as it is, so no key is needed.
type Mover interface {
	// Exportable returns nil if the volume can be copied and then discarded: in_use
	// while it is open, wrong_state if clones read from it, except for those in with,
	// which are discarded first.
	Exportable(ctx context.Context, id api.VolumeID, with ...api.VolumeID) error
	// ExportVolume writes the volume to w, without parts that were never written.
	// Meanwhile its content and its snapshots do not change and cannot be deleted.
	// Of a clone it also writes what the clone reads from its snapshot, so that the
	// copy reads from no other volume. That a volume does not exist, is open, or has
	// an incomplete snapshot is returned before the first byte is written.
	ExportVolume(ctx context.Context, id api.VolumeID, w io.Writer) error
	// ImportVolume creates the volume that another node's ExportVolume writes. It
	// needs the image that the volume reads (Volume.Reads; not_found). An existing volume is
	// already_exists: only the caller knows whether it is a copy of the same content.
	// Content that ends early is unavailable, and leaves nothing.
	ImportVolume(ctx context.Context, in VolumeImport) (Volume, error)
	// DiscardVolume deletes the volume with its snapshots, without reading them:
	// another node has it. in_use while it, or a snapshot, is open or cloned.
	DiscardVolume(ctx context.Context, id api.VolumeID) error
}

// VolumeImport describes a volume to import.
type VolumeImport struct {
	ID      api.VolumeID
	Content io.Reader
	// Progress, when not nil, is called with the bytes of the volume that were
	// received so far, on the importing goroutine.
	Progress func(bytes int64)
}

// IsCloned returns the error for moving a volume that another one reads from.
func IsCloned(r SnapshotRef, clone api.VolumeID) error {
	return api.Errorf(api.CodeState, "volume %s shares data with volume %s, which is a clone of its snapshot %s", r.Volume, clone, r.ID).
		WithHint("migrate or delete the clone first")
}

// BrokenTransfer returns the error for content that ended early or is not what
// ExportVolume writes.
func BrokenTransfer(v api.VolumeID, why string) error {
	return api.Errorf(api.CodeUnavailable, "the copy of volume %s was interrupted: %s", v, why).WithHint("it is tried again automatically")
}
