package sds

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// SnapshotCreate describes a snapshot to create.
type SnapshotCreate struct {
	ID     api.SnapshotID
	Volume api.VolumeID
}

// Snapshot is a snapshot of a volume.
type Snapshot struct {
	ID        api.SnapshotID
	Volume    api.VolumeID
	SizeBytes int64 // of the disk in it
	CreatedAt time.Time
	// Ready means that its content does not change any more. One that is not
	// ready is incomplete, and is completed when it is requested again.
	Ready bool
}

// Access is what the caller provides for an operation on a volume that may be
// open or encrypted.
type Access struct {
	// Live is the machine that has the volume open; nil: none.
	Live Live
	// Encryption is that of the volume; nil: it is not encrypted.
	Encryption *Encryption
}

// Live is the volume as a disk of a running machine. Every method is
// idempotent: what is done already is success.
type Live interface {
	// Overlay makes the machine write to the file path from now on, whose backing
	// file is the one that it writes to now. The file exists, is complete and
	// empty, and has the right format and size. The guest's file systems are
	// frozen meanwhile if the guest supports that.
	Overlay(ctx context.Context, path string) error
	// Commit merges the file top of the disk's chain into base, the next one
	// below it, and removes top from the chain. The machine does not write to
	// top; the file above it has base as its backing file afterwards. It returns
	// when that is done.
	Commit(ctx context.Context, top, base string) error
	// Resize grows the disk and its file, and notifies the guest.
	Resize(ctx context.Context, bytes int64) error
}

// Reading is a volume or snapshot that is open for reading.
type Reading struct {
	Source    Source // to be opened read-only
	SizeBytes int64
	// Close ends it. It must be called once, when Source is not open any more.
	Close func() error
}
