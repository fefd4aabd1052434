// Package sds is the storage of a node: images that volumes are created from,
// volumes that instances use as disks, and snapshots of volumes. This package
// has the types and the Driver interface; sds/local stores files in a
// directory, which may be shared by all nodes, sds/ceph images in a Ceph
// cluster, sds/fake stores them in memory, and sds/drivertest checks all of
// them against the contract in this file. DESIGN.md describes how a pool is
// shared.
package sds

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Format is the format of an image or volume.
type Format string

// Formats.
const (
	Raw   Format = "raw"
	QCOW2 Format = "qcow2"
	// ISO is the format of images only: a disc, such as an installation medium. It
	// is stored as it was received, and no volume can be created from it.
	ISO Format = "iso"
)

// QEMU returns the name of the format for QEMU.
func (f Format) QEMU() string {
	if f == ISO {
		return string(Raw)
	}
	return string(f)
}

// NoVolume returns the error for a volume to be created from a disc.
func NoVolume(id api.ImageID) error {
	return api.Errorf(api.CodeInvalid, "image %s is an installation medium, want a disk image", id).At("spec.image").
		WithHint("insert it into a CD drive of an instance")
}

// Driver stores images and volumes.
//
// Every method is idempotent and atomic: after a crash at any point a volume
// or an image exists completely or not at all, and repeating the call
// completes the work. Errors that a user may see are *api.Error: not_found,
// invalid (a file that is not an image, a volume smaller than its image),
// in_use, insufficient_disk, too_large, unavailable (the image's server),
// wrong_state (the driver lacks the capability). A key that does not open a
// volume is invalid. Anything else is internal.
type Driver interface {
	Capabilities() Capabilities
	// PoolID identifies a shared pool: drivers with the same ID have the same
	// volumes. It is empty if the storage belongs to this node alone.
	PoolID() string

	// ImportImage fetches, checks and stores an image. An existing one is
	// returned unchanged, and its source is not read.
	ImportImage(ctx context.Context, in ImageImport) (Image, error)
	Image(ctx context.Context, id api.ImageID) (Image, error)
	Images(ctx context.Context) ([]Image, error)
	// DeleteImage returns in_use while volumes are created from the image.
	DeleteImage(ctx context.Context, id api.ImageID) error
	// ExportImage returns the image's file as it was received, so that another
	// node can import it with the same SHA-256. The caller closes it.
	ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, Image, error)

	// CreateVolume creates a volume from an image, or a blank one. An existing
	// one is returned unchanged if it was created from the same image.
	CreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	Volume(ctx context.Context, id api.VolumeID) (Volume, error)
	// RecreateVolume discards the volume's content and creates it again, if
	// v.Epoch is higher than the epoch that it was created in; a volume of the
	// same epoch is returned unchanged, one of a higher epoch is wrong_state. A
	// volume that does not exist is created. One with snapshots is in_use.
	RecreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	// Volumes returns all volumes, of a shared pool those of every node. Orphans
	// returns which of them may be swept.
	Volumes(ctx context.Context) ([]Volume, error)
	// ResizeVolume grows the volume to at least that size; it never shrinks. A
	// volume in use requires a.Live and Capabilities.ResizeOnline.
	ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a Access) (Volume, error)
	// DeleteVolume returns in_use while the volume is open, and while it has
	// snapshots.
	DeleteVolume(ctx context.Context, id api.VolumeID) error
	// Movable returns nil if a live migration may copy the volume's disk to
	// another node, and wrong_state if that would lose its snapshots.
	Movable(ctx context.Context, id api.VolumeID) error

	// CreateSnapshot stores the volume's present content. An existing snapshot is
	// returned unchanged. An incomplete one (Ready is false) is completed.
	CreateSnapshot(ctx context.Context, s SnapshotCreate, a Access) (Snapshot, error)
	Snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID) (Snapshot, error)
	// Snapshots returns the snapshots of the volume, the oldest first.
	Snapshots(ctx context.Context, v api.VolumeID) ([]Snapshot, error)
	// DeleteSnapshot returns in_use while volumes are cloned from it or it is
	// open for reading. The volume's content does not change.
	DeleteSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, a Access) error
	// RollbackVolume sets the volume's content to that of its snapshot; its size
	// and its snapshots do not change. in_use while it is open. It is done if
	// count is higher than Volume.Rollbacks, which it becomes; with the same
	// count the volume is returned unchanged, a lower one is wrong_state.
	RollbackVolume(ctx context.Context, v api.VolumeID, id api.SnapshotID, count int64, a Access) (Volume, error)
	// OpenForReading opens a snapshot's content, or, if id is empty, that of a
	// volume that is not open (in_use). Until the reading is closed the content
	// does not change and cannot be deleted.
	OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (Reading, error)

	// ClaimVolume makes o the owner: claim an instance's volumes before it is
	// started. A higher epoch takes over (the cluster has made sure that the old
	// owner is dead or frozen: its clients cannot write any more); another node's
	// lower or equal epoch is wrong_state. Claim again when a machine has opened
	// the volume and before it writes: so the pool knows which clients to fence.
	// Without Capabilities.Shared it does nothing.
	ClaimVolume(ctx context.Context, id api.VolumeID, o Owner) error
	// ReleaseVolume ends o's claim; it does nothing if another owner took over,
	// or if the claim never existed. Epochs that were rejected before still are.
	ReleaseVolume(ctx context.Context, id api.VolumeID, o Owner) error
	// Owner returns the owner of the volume; zero: none.
	Owner(ctx context.Context, id api.VolumeID) (Owner, error)

	Space(ctx context.Context) (Space, error)
	// Close releases the driver's resources; nothing is deleted.
	Close() error
}

// Capabilities are the capabilities of a driver.
type Capabilities struct {
	Name string // "local", "shared", "ceph", "fake"
	// Shared: every node has the same volumes.
	Shared bool
	// Thin: a volume only uses space for what was written to it.
	Thin bool
	// ResizeOnline: a volume may grow while an instance uses it.
	ResizeOnline bool
	// Snapshots: snapshots can be created, and volumes rolled back to them.
	Snapshots bool
	// LiveSnapshots: also of a volume that an instance uses.
	LiveSnapshots bool
	// Clones: volumes can be created from snapshots, copied on write.
	Clones bool
	// Encryption: volumes can be encrypted.
	Encryption bool
}

// ImageImport describes what to import. Exactly one of URL and Content is set.
type ImageImport struct {
	ID     api.ImageID
	Format Format // the format that the file must have
	SHA256 string // of the received file, hex; empty: not checked
	// URL is http, https or, where the driver allows it, file.
	URL string
	// Content is read once, to its end.
	Content io.Reader
	// SizeBytes is the size of Content, if known: a shorter one is then
	// unavailable and not invalid. 0: not known.
	SizeBytes int64
	// Progress, when not nil, is called with the bytes received so far, a few
	// times a second, on the importing goroutine.
	Progress func(bytes int64)
}

// Image is a stored image.
type Image struct {
	ID           api.ImageID
	Format       Format
	SHA256       string // of the received file, hex
	SizeBytes    int64  // of the received file
	VirtualBytes int64  // of the disk in it
	Path         string // on this node
}

// Owner is the owner of a volume: the node whose instance may open it.
type Owner struct {
	Node api.NodeID
	// Epoch is that of the assignment to the node.
	Epoch int64
}

// Space is the size of the store, in bytes.
type Space struct {
	TotalBytes int64
	FreeBytes  int64
}
