package sds

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// VolumeCreate describes a volume to create: from an image, from a snapshot,
// or blank.
type VolumeCreate struct {
	ID    api.VolumeID
	Image api.ImageID // empty: none
	// Snapshot is the one that it is cloned from; zero: none. The volume reads
	// from it what it has not written, so it cannot be deleted meanwhile.
	Snapshot SnapshotRef
	// SizeBytes is rounded up to a whole MiB; 0: the image's or the snapshot's.
	SizeBytes int64
	// Epoch is that of the content: see RecreateVolume.
	Epoch int64
	// Standalone is set if the volume is to receive another's whole content (a
	// live migration with its disks). It is blank, exactly SizeBytes large and
	// needs no image and no snapshot on this node; those only record what it was
	// created from.
	Standalone bool
	// Encryption, when not nil, encrypts what is written to the volume. What it
	// reads from its image is not encrypted. A clone is encrypted if and only if
	// its snapshot is, with the same key.
	Encryption *Encryption
	// Fill, when not nil, writes the content before the volume appears; after an
	// error nothing remains. It is not called for an existing volume.
	Fill func(ctx context.Context, into Source) error
}

// Encryption is encryption at rest, with QEMU's LUKS.
type Encryption struct {
	// Passphrase is 16 to 256 printable ASCII characters, generated at random: it
	// is not stretched, so that a volume opens fast.
	Passphrase []byte
}

// SnapshotRef identifies a snapshot.
type SnapshotRef struct {
	Volume api.VolumeID
	ID     api.SnapshotID
}

// Volume is a stored volume.
type Volume struct {
	ID             api.VolumeID
	Image          api.ImageID // that it was created from
	Snapshot       SnapshotRef // that it was created from
	SizeBytes      int64       // as an instance sees it
	AllocatedBytes int64       // used on the node, with its snapshots
	Source         Source      // for the hypervisor
	// Epoch is the one that its content was created in.
	Epoch int64
	// Rollbacks is the highest count of a RollbackVolume that was done.
	Rollbacks int64
	// Standalone means that it does not read from the Image or Snapshot that it was
	// created from.
	Standalone bool
	// Reads is the image that it reads, itself or through the snapshots that it was
	// cloned from; empty: none. Only a Mover sets it.
	Reads api.ImageID
	// Age is the time since its creation, by the store's own clock, which may
	// differ from the node's. Only Volumes sets it.
	Age time.Duration
}

// Source is the location of a disk for a hypervisor. Exactly one of Path and
// RBD is set. It is valid until the next operation that changes the volume or
// its snapshots: before starting a machine, get it again, and run no such
// operation meanwhile.
type Source struct {
	Path   string // on this node
	RBD    *RBD
	Format Format // never guessed from the content, which the guest writes
	// Encrypted means encrypted with LUKS: within the format if that is QCOW2,
	// below it if it is Raw. The volume's passphrase opens it.
	Encrypted bool
	// Backing has the content that this file lacks; nil: this file has
	// everything. To open the disk, name the whole chain; all encrypted parts
	// have the same passphrase.
	Backing *Source
}

// RBD is an image in a Ceph cluster. It does not contain the key of User.
type RBD struct {
	Pool, Image string
	Snapshot    string   // of the image, read-only; empty: none
	Monitors    []string // HOST:PORT
	User        string   // without "client."
}
