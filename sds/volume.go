package sds

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// VolumeCreate describes what volume to make: of an image, of a snapshot, or blank.
type VolumeCreate struct {
	ID    api.VolumeID
	Image api.ImageID // empty: of none
	// Snapshot that it is cloned from; zero: none. The volume reads from it
	// what it has not written, so that it cannot be deleted meanwhile.
	Snapshot SnapshotRef
	// SizeBytes is rounded up to a whole MiB; 0: the image's or the snapshot's.
	SizeBytes int64
	// Epoch of the content: see RecreateVolume.
	Epoch int64
	// Standalone: the volume is to receive another's whole content (a live
	// migration with its disks). It is blank, exactly SizeBytes large and
	// needs no image and no snapshot on this node; those only say what it was
	// made from.
	Standalone bool
	// Encryption, when not nil, encrypts what is written to the volume. What
	// it reads from its image stays as the image has it. A clone is encrypted
	// if and only if its snapshot is, with the same key.
	Encryption *Encryption
	// Fill, when not nil, writes the content before the volume appears; an
	// error leaves nothing. It is not called for a volume that is there.
	Fill func(ctx context.Context, into Source) error
}

// Encryption at rest, by QEMU's LUKS.
type Encryption struct {
	// Passphrase is 16 to 256 printable ASCII characters, drawn at random: it
	// is not stretched, so that a volume opens in no time.
	Passphrase []byte
}

// SnapshotRef names a snapshot.
type SnapshotRef struct {
	Volume api.VolumeID
	ID     api.SnapshotID
}

// Volume that is kept.
type Volume struct {
	ID             api.VolumeID
	Image          api.ImageID // it was made from
	Snapshot       SnapshotRef // it was made from
	SizeBytes      int64       // as an instance sees it
	AllocatedBytes int64       // taken on the node, with its snapshots
	Source         Source      // what the hypervisor is told
	// Epoch that its content was made in.
	Epoch int64
	// Rollbacks done: the highest count that RollbackVolume was told.
	Rollbacks int64
	// Standalone: it does not read from its image or snapshot.
	Standalone bool
	// Age since it was made, by the store's own clock, which may differ from
	// the node's. Only Volumes says it.
	Age time.Duration
}

// Source is where a hypervisor finds a disk. Exactly one of Path and RBD is
// set. It is good until the next verb that changes the volume or its snapshots:
// whoever starts a machine runs no such verb meanwhile, and asks before.
type Source struct {
	Path   string // on this node
	RBD    *RBD
	Format Format // never guessed from the content, which the guest writes
	// Encrypted with LUKS: within the format if that is QCOW2, below it if it
	// is Raw. The volume's passphrase opens it.
	Encrypted bool
	// Backing has what this file does not; nil: it has everything. Whoever opens
	// the disk names the whole chain, and what of it is encrypted has the
	// same passphrase.
	Backing *Source
}

// RBD is an image in a Ceph cluster. The key of User is not said here.
type RBD struct {
	Pool, Image string
	Snapshot    string   // of the image, to be read only; empty: none
	Monitors    []string // HOST:PORT
	User        string   // without "client."
}
