// Package sds is the storage of a node: images that volumes are made from,
// and volumes that instances use as disks. This package holds the types and
// the Driver interface; sds/local keeps files in a directory, sds/fake keeps
// nothing, and sds/drivertest holds both to what is written here.
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
// the capability). Anything else is internal.
type Driver interface {
	Capabilities() Capabilities

	// ImportImage fetches, checks and keeps an image. One that is there
	// already is returned as it is, and its source is not read.
	ImportImage(ctx context.Context, in ImageImport) (Image, error)
	Image(ctx context.Context, id api.ImageID) (Image, error)
	Images(ctx context.Context) ([]Image, error)
	// DeleteImage refuses with in_use while volumes are made from it.
	DeleteImage(ctx context.Context, id api.ImageID) error

	// CreateVolume makes a volume from an image, or a blank one. One that is
	// there already is returned as it is when it was made from the same image.
	CreateVolume(ctx context.Context, v VolumeCreate) (Volume, error)
	Volume(ctx context.Context, id api.VolumeID) (Volume, error)
	// Volumes is every volume there is: what the caller does not know among
	// them is an orphan.
	Volumes(ctx context.Context) ([]Volume, error)
	// ResizeVolume makes it at least that big; it never shrinks. The volume
	// must not be in use unless Capabilities.ResizeOnline.
	ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (Volume, error)
	DeleteVolume(ctx context.Context, id api.VolumeID) error

	Space(ctx context.Context) (Space, error)
	// Close lets go of what the driver holds; nothing is deleted.
	Close() error
}

// Capabilities a driver declares.
type Capabilities struct {
	Name string // "local", "fake"
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
}

// Space of the store, in bytes.
type Space struct {
	TotalBytes int64
	FreeBytes  int64
}
