package sds

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// SnapshotCreate describes what to keep.
type SnapshotCreate struct {
	ID     api.SnapshotID
	Volume api.VolumeID
}

// Snapshot of a volume.
type Snapshot struct {
	ID        api.SnapshotID
	Volume    api.VolumeID
	SizeBytes int64 // of the disk in it
	CreatedAt time.Time
	// Ready: what it keeps changes no more. One that is not was begun, and is
	// finished when it is asked for again.
	Ready bool
}

// Access is what the caller brings to a verb about a volume that may be open
// or encrypted.
type Access struct {
	// Live is the machine that has the volume open; nil: none has.
	Live Live
	// Encryption of the volume; nil: it is not encrypted.
	Encryption *Encryption
}

// Live is the one disk of a running machine that is the volume. Every verb is
// idempotent: what is done already is success.
type Live interface {
	// Overlay has the machine write into the new file path from now on, whose
	// backing file is what it writes now. The file is there, whole, empty, and
	// of the right format and size. The guest's file systems are frozen for it
	// if the guest can.
	Overlay(ctx context.Context, path string) error
	// Commit merges the file top of the disk's chain into base, the next one
	// below it, and takes top out of the chain. The machine does not write to
	// top; what is above it names base as its backing file afterwards. It
	// returns when that is done.
	Commit(ctx context.Context, top, base string) error
	// Resize makes the disk larger, for the guest too. It changes the file.
	Resize(ctx context.Context, bytes int64) error
}

// Reading of a volume or snapshot.
type Reading struct {
	Source    Source // to be opened read-only
	SizeBytes int64
	// Close ends it. It must be called once, when nobody has Source open any
	// more.
	Close func() error
}
