package hypervisor

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Devices are the verbs that change a machine while it runs. They change its
// definition too, so that what was attached is there after its next start, and
// what was detached is not. Of a machine that does not run they change the
// definition alone. A disk is named by its serial, a network card by its
// address. Like all verbs they are idempotent: after a failure, ask again.
//
// A machine that is being moved is changed when it has arrived (wrong_state).
// One that was started by a Basalt that knew nothing of this has no room:
// wrong_state, until it is started again.
type Devices interface {
	// AttachDisk gives it one disk more. exists when it has another disk of
	// that serial, invalid when it has as many as it can have. The disk's
	// secrets are set.
	AttachDisk(ctx context.Context, id api.InstanceID, k Disk) error
	// DetachDisk takes a disk away, and returns when QEMU has closed it. The
	// guest has to agree: in_use when it does not within DetachPatience. It may
	// still do so later, or at its next reboot. No such disk, no such domain:
	// nothing to do.
	DetachDisk(ctx context.Context, id api.InstanceID, serial string) error
	// ResizeDisk grows a disk of a running machine to at least so many bytes,
	// its file or image with it, and tells the guest. Nothing to do for what
	// does not run.
	ResizeDisk(ctx context.Context, id api.InstanceID, serial string, bytes int64) error
	// SetDiskQoS bounds what the disk does from now on.
	SetDiskQoS(ctx context.Context, id api.InstanceID, serial string, q QoS) error

	// SnapshotDisk makes a running machine write into overlay from now on: a
	// qcow2 file that the caller has made above what the disk has open now.
	// That is only read from then on. There is no moment between the two. The
	// overlay is opened with the disk's Secret. wrong_state when it does not
	// run.
	SnapshotDisk(ctx context.Context, id api.InstanceID, serial, overlay string) error
	// CommitDisk writes what the layer top has into base, below it, takes all
	// layers from top down to base out of the running machine's chain, and
	// returns when that is done. The files are then the caller's. When top is
	// not in the chain but base is, it has been done. wrong_state when it does
	// not run. What ends it before its end can be asked for again.
	CommitDisk(ctx context.Context, id api.InstanceID, serial, top, base string) error
	// Disks that a running machine has open, with their chains of files; of
	// what does not run, those of its definition, without.
	Disks(ctx context.Context, id api.InstanceID) ([]OpenDisk, error)

	// AttachNIC gives it one network card more, on a tap that exists. exists
	// when it has one of that address on another tap.
	AttachNIC(ctx context.Context, id api.InstanceID, n NIC) error
	// DetachNIC takes it away, as DetachDisk does. The tap belongs to the
	// caller.
	DetachNIC(ctx context.Context, id api.InstanceID, mac string) error

	// SetSecret gives the hypervisor what it needs to open a disk. It keeps it
	// in memory only: whoever makes a QEMU open a disk sets it before. A domain
	// that runs does not need it any more.
	SetSecret(ctx context.Context, s Secret) error
	// UnsetSecret makes it forget; nothing to do when it has none.
	UnsetSecret(ctx context.Context, uuid string) error
}

// DetachPatience is how long a guest is waited for that should let go of a
// device.
const DetachPatience = 20 * time.Second

// OpenDisk is a disk of a domain.
type OpenDisk struct {
	Serial string
	// Chain of files, what is written to first; empty for an image in Ceph.
	Chain []string
	QoS   QoS
}
