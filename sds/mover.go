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
	// Exportable returns nil if ExportVolume can copy the volume: in_use while it is
	// open, wrong_state if other volumes read from it or it reads from another one.
	Exportable(ctx context.Context, id api.VolumeID) error
	// ExportVolume writes the volume to w, without parts that were never written.
	// Meanwhile its content and its snapshots do not change and cannot be deleted.
	// Errors of Exportable are returned before the first byte is written.
	ExportVolume(ctx context.Context, id api.VolumeID, w io.Writer) error
	// ImportVolume creates the volume that another node's ExportVolume writes. It
	// needs the image that the volume reads from (not_found). An existing volume is
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

// IsClone returns the error for copying a volume that reads from another one's
// snapshot.
func IsClone(v api.VolumeID, from SnapshotRef) error {
	return api.Errorf(api.CodeState, "volume %s is a clone that shares data with snapshot %s of volume %s on this node", v, from.ID, from.Volume).
		WithHint("start the instance and migrate it while it runs, or back the volume up and restore it there")
}

// IsCloned returns the error for copying a volume that another one reads from.
func IsCloned(r SnapshotRef, clone api.VolumeID) error {
	return api.Errorf(api.CodeState, "volume %s shares data with volume %s, which is a clone of its snapshot %s", r.Volume, clone, r.ID).
		WithHint("delete the clone first")
}

// BrokenTransfer returns the error for content that ended early or is not what
// ExportVolume writes.
func BrokenTransfer(v api.VolumeID, why string) error {
	return api.Errorf(api.CodeUnavailable, "the copy of volume %s was interrupted: %s", v, why).WithHint("it is tried again automatically")
}
