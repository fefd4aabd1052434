package hypervisor

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Devices are the methods that change a machine while it runs. They change its
// definition too, so that an attached device exists after the next start and a
// detached one does not. Of a machine that does not run they change the
// definition alone. A disk is identified by its serial, a network card by its
// MAC address. All methods are idempotent: after a failure, call again.
//
// A machine that is being migrated cannot be changed until that has ended
// (wrong_state). One that was started by a Basalt version without hotplug has
// no free slots: wrong_state, until it is started again.
type Devices interface {
	// AttachDisk attaches another disk. It returns exists if the machine has
	// another disk with that serial, and invalid if it has MaxDisks. The disk's
	// secrets must be set.
	AttachDisk(ctx context.Context, id api.InstanceID, k Disk) error
	// DetachDisk detaches a disk, and returns when QEMU has closed it. The guest
	// must cooperate: in_use if it does not within DetachPatience; it may still
	// release the disk later, or at its next reboot. It does nothing if the disk
	// or the domain does not exist.
	DetachDisk(ctx context.Context, id api.InstanceID, serial string) error
	// ResizeDisk grows a disk of a running machine, with its file or image, to at
	// least the given number of bytes, and notifies the guest. It does nothing if
	// the machine does not run.
	ResizeDisk(ctx context.Context, id api.InstanceID, serial string, bytes int64) error
	// SetDiskQoS sets the limits of the disk from now on.
	SetDiskQoS(ctx context.Context, id api.InstanceID, serial string, q QoS) error

	// SnapshotDisk makes a running machine write into overlay from now on,
	// atomically. overlay is a qcow2 file that the caller has created with the
	// disk's present top file as its backing file, which is only read from then
	// on. The overlay is opened with the disk's Secret. wrong_state if the
	// machine does not run.
	SnapshotDisk(ctx context.Context, id api.InstanceID, serial, overlay string) error
	// CommitDisk writes the content of the layer top into base below it, removes
	// the layers from top down to above base from the running machine's chain,
	// and returns when that is done. The caller may then delete their files. If
	// top is not in the chain but base is, it does nothing. wrong_state if the
	// machine does not run. After an interruption, call again.
	CommitDisk(ctx context.Context, id api.InstanceID, serial, top, base string) error
	// Disks returns the disks that a running machine has open, with their chains
	// of files; of a machine that does not run, those of its definition, without
	// chains.
	Disks(ctx context.Context, id api.InstanceID) ([]OpenDisk, error)

	// SetMedium inserts the file, which is only read, into a CD drive of the
	// machine in place of what is in it; an empty path ejects. The drive is an
	// index of Domain.Drives: wrong_state if the machine was started without it.
	// The guest must cooperate: in_use if it has locked the drive.
	SetMedium(ctx context.Context, id api.InstanceID, drive int, path string) error
	// Drives returns the CD drives of a running machine, or those of the
	// definition of one that does not run.
	Drives(ctx context.Context, id api.InstanceID) ([]Drive, error)

	// AttachNIC attaches another network card, on a tap that exists. It returns
	// exists if the machine has a card with that MAC address on another tap.
	AttachNIC(ctx context.Context, id api.InstanceID, n NIC) error
	// DetachNIC detaches the card, in the same way as DetachDisk. The tap belongs
	// to the caller.
	DetachNIC(ctx context.Context, id api.InstanceID, mac string) error

	// SetSecret passes the key of a disk to the hypervisor, which stores it in
	// memory only: set it before anything makes a QEMU open the disk. A running
	// domain does not need it any more.
	SetSecret(ctx context.Context, s Secret) error
	// UnsetSecret removes the secret. It does nothing if there is none.
	UnsetSecret(ctx context.Context, uuid string) error
}

// DetachPatience is how long to wait for a guest to release a device.
const DetachPatience = 20 * time.Second

// OpenDisk is a disk of a domain.
type OpenDisk struct {
	Serial string
	// Chain of files, from the one that is written to downwards; empty for an
	// image in Ceph.
	Chain []string
	QoS   QoS
}
