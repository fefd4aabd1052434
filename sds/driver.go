// Package sds is the storage of a node: images that volumes are made from,
// and volumes that instances use as disks. This package holds the types and
// the Driver interface; sds/local keeps files in a directory, which may be one
// that all nodes share, sds/fake keeps nothing, and sds/drivertest holds both
// to what is written here. DESIGN.md says how a pool is shared.
package sds

import (
	"context"
	"io"
	"time"

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
// the capability). Anything else is internal.
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
	// volume that is not there is created.
	RecreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	// Volumes is every volume there is, of a shared pool those of every node.
	// Orphans says which of them may be swept.
	Volumes(ctx context.Context) ([]Volume, error)
	// ResizeVolume makes it at least that big; it never shrinks. The volume
	// must not be in use unless Capabilities.ResizeOnline.
	ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (Volume, error)
	DeleteVolume(ctx context.Context, id api.VolumeID) error

	// ClaimVolume makes o the owner: whoever starts an instance claims its
	// volumes first. A higher epoch takes over (the cluster has made sure that
	// the old owner is dead); another node's lower or equal epoch is refused
	// with wrong_state. Without Capabilities.Shared it does nothing.
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
	Name string // "local", "shared", "fake"
	// Shared: every node sees the same volumes.
	Shared bool
	// Thin: a volume takes only what was written to it.
	Thin bool
	// ResizeOnline: a volume may grow while an instance uses it.
	ResizeOnline bool
	// Snapshots can be made.
	Snapshots bool
}

// ImageImport says what to import. Exactly one of URL and Content is set.
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

// VolumeCreate says what volume to make.
type VolumeCreate struct {
	ID    api.VolumeID
	Image api.ImageID // empty: blank
	// SizeBytes is rounded up to a whole MiB; 0 with an image: the image's.
	SizeBytes int64
	// Epoch of the content: see RecreateVolume.
	Epoch int64
	// Standalone: the volume is to receive another's whole content (a live
	// migration with its disks). It is blank, exactly SizeBytes large and
	// needs no image on this node; Image only says what it was made from.
	Standalone bool
}

// Volume that is kept.
type Volume struct {
	ID             api.VolumeID
	Image          api.ImageID // it was made from
	SizeBytes      int64       // as an instance sees it
	AllocatedBytes int64       // taken on the node
	// Path and Format are what the hypervisor is told.
	Path   string
	Format Format
	// Epoch that its content was made in.
	Epoch int64
	// Standalone: it does not read from its image.
	Standalone bool
	// Age since it was made, by the store's own clock, which may differ from
	// the node's. Only Volumes says it.
	Age time.Duration
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
