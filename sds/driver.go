// Package sds is the storage of a node: images that volumes are made from,
// volumes that instances use as disks, and snapshots of volumes. This package
// holds the types and the Driver interface; sds/local keeps files in a
// directory, which may be one that all nodes share, sds/ceph keeps images of a
// Ceph cluster, sds/fake keeps nothing, and sds/drivertest holds all of them to
// what is written here. DESIGN.md says how a pool is shared.
package sds

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
)

// Format of an image or volume.
type Format string

// Formats.
const (
	Raw   Format = "raw"
	QCOW2 Format = "qcow2"
)

// Driver keeps images and volumes.
//
// Every verb is idempotent and atomic: after a crash at any point a volume or
// an image is there whole or not at all, and asking again finishes the work.
// Errors that a user may see are *api.Error: not_found, invalid (an image that
// is none, a volume smaller than its image), in_use, insufficient_disk,
// too_large, unavailable (the image's server), wrong_state (the driver lacks
// the capability). A key that does not open a volume is invalid. Anything else
// is internal.
type Driver interface {
	Capabilities() Capabilities
	// PoolID names a shared pool: drivers that say the same have the same
	// volumes. Empty when what the driver keeps is this node's own.
	PoolID() string

	// ImportImage fetches, checks and keeps an image. One that is there
	// already is returned as it is, and its source is not read.
	ImportImage(ctx context.Context, in ImageImport) (Image, error)
	Image(ctx context.Context, id api.ImageID) (Image, error)
	Images(ctx context.Context) ([]Image, error)
	// DeleteImage refuses with in_use while volumes are made from it.
	DeleteImage(ctx context.Context, id api.ImageID) error
	// ExportImage gives the image's file as it was sent, so that another node
	// can import it under the same SHA-256. The caller closes it.
	ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, Image, error)

	// CreateVolume makes a volume from an image, or a blank one. One that is
	// there already is returned as it is when it was made from the same image.
	CreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	Volume(ctx context.Context, id api.VolumeID) (Volume, error)
	// RecreateVolume throws the volume's content away and makes it anew, when
	// v.Epoch is higher than the epoch that it was made in; one of the same
	// epoch is returned as it is, one of a higher refused with wrong_state. A
	// volume that is not there is created. One with snapshots is in_use.
	RecreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	// Volumes is every volume there is, of a shared pool those of every node.
	// Orphans says which of them may be swept.
	Volumes(ctx context.Context) ([]Volume, error)
	// ResizeVolume makes it at least that big; it never shrinks. One that is
	// in use needs a.Live and Capabilities.ResizeOnline.
	ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a Access) (Volume, error)
	// DeleteVolume refuses with in_use while it is open, and while it has
	// snapshots.
	DeleteVolume(ctx context.Context, id api.VolumeID) error
	// Movable reports whether a live migration may copy the volume's disk to
	// another node: wrong_state where that would lose its snapshots.
	Movable(ctx context.Context, id api.VolumeID) error

	// CreateSnapshot keeps the volume as it is now. One that is there already
	// is returned as it is. One that was begun (Ready is false) is finished.
	CreateSnapshot(ctx context.Context, s SnapshotCreate, a Access) (Snapshot, error)
	Snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID) (Snapshot, error)
	// Snapshots of the volume, the oldest first.
	Snapshots(ctx context.Context, v api.VolumeID) ([]Snapshot, error)
	// DeleteSnapshot refuses with in_use while volumes are cloned from it or it
	// is open for reading. The volume's content stays what it is.
	DeleteSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, a Access) error
	// RollbackVolume makes the volume's content that of its snapshot; its size
	// and its snapshots stay. in_use while it is open. It is done when count is
	// higher than Volume.Rollbacks, which it becomes; the same count returns
	// the volume as it is, a lower one is refused with wrong_state.
	RollbackVolume(ctx context.Context, v api.VolumeID, id api.SnapshotID, count int64, a Access) (Volume, error)
	// OpenForReading gives a snapshot's content, or, where id is empty, that of
	// a volume that nobody has open (in_use). Until the reading is closed the
	// content stays as it is and cannot be deleted.
	OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (Reading, error)

	// ClaimVolume makes o the owner: whoever starts an instance claims its
	// volumes first. A higher epoch takes over (the cluster has made sure that
	// the old owner is dead, or frozen: its clients cannot write any more); another
	// node's lower or equal epoch is refused with wrong_state. It is claimed again
	// when a machine has opened it and before that writes: so the pool knows whom
	// to keep from writing. Without Capabilities.Shared it does nothing.
	ClaimVolume(ctx context.Context, id api.VolumeID, o Owner) error
	// ReleaseVolume ends o's claim; one that somebody took over, or that never
	// was, is left alone. Epochs that were refused before still are.
	ReleaseVolume(ctx context.Context, id api.VolumeID, o Owner) error
	// Owner of the volume; zero: nobody.
	Owner(ctx context.Context, id api.VolumeID) (Owner, error)

	Space(ctx context.Context) (Space, error)
	// Close lets go of what the driver holds; nothing is deleted.
	Close() error
}

// Capabilities a driver declares.
type Capabilities struct {
	Name string // "local", "shared", "ceph", "fake"
	// Shared: every node sees the same volumes.
	Shared bool
	// Thin: a volume takes only what was written to it.
	Thin bool
	// ResizeOnline: a volume may grow while an instance uses it.
	ResizeOnline bool
	// Snapshots can be made, and volumes rolled back to them.
	Snapshots bool
	// LiveSnapshots: also of a volume that an instance uses.
	LiveSnapshots bool
	// Clones: volumes can be made from snapshots, copied on write.
	Clones bool
	// Encryption: volumes can be encrypted.
	Encryption bool
}

// ImageImport describes what to import. Exactly one of URL and Content is set.
type ImageImport struct {
	ID     api.ImageID
	Format Format // what it must turn out to be
	SHA256 string // of the file as sent, hex; empty: not checked
	// URL is http, https or, where the driver allows it, file.
	URL string
	// Content is read once, to its end.
	Content io.Reader
	// SizeBytes of Content, where it is known: one that ends early is then
	// unavailable and not invalid. 0: not known.
	SizeBytes int64
	// Progress, when not nil, is told the bytes received so far, some times a
	// second, on the importing goroutine.
	Progress func(bytes int64)
}

// Image that is kept.
type Image struct {
	ID           api.ImageID
	Format       Format
	SHA256       string // of the file as sent, hex
	SizeBytes    int64  // of the file as sent
	VirtualBytes int64  // of the disk in it
	Path         string // on this node
}

// Owner of a volume: the node whose instance may open it.
type Owner struct {
	Node api.NodeID
	// Epoch of the assignment that gave it to the node.
	Epoch int64
}

// Space of the store, in bytes.
type Space struct {
	TotalBytes int64
	FreeBytes  int64
}
