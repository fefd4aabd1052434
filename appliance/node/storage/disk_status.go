package storage

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// diskView is what a disk's status is derived from, on its node.
type diskView struct {
	disk    api.Disk     // the disk's object
	block   *Block       // nil if the disk is missing
	osd     *storage.OSD // nil if it is not one of Ceph's disks
	found   *deploy.Found
	table   *storage.Table // nil if it is not one for databases
	parted  *deploy.FoundTable
	dbReady bool // the disk for its database, if it has one, is used for databases
	round   deploy.Round
	off     bool          // there is no Ceph cluster
	begun   bool          // the cluster has had no quorum yet
	pool    *poolDecision // nil if it is not, and is not to become, a pool of this node's own
}

// diskStatus returns the status of a disk.
func diskStatus(node api.NodeID, v diskView) api.DiskStatus {
	st := v.disk.Status // the description of a removed disk is kept
	st.Node, st.Osd, st.Reason, st.FreeBytes = node, -1, "", 0
	if b := v.block; b != nil {
		st.Path, st.ByID, st.Model, st.Serial, st.SizeBytes, st.Rotational = b.Path, b.ByID, b.Model, b.Serial, b.SizeBytes, b.Rotational
	}
	if v.pool != nil && v.osd == nil {
		st.ObservedGeneration, st.State, st.Reason = max(v.disk.Meta.Generation, 1), v.pool.state, storage.Line(v.pool.reason)
		return st
	}
	use := v.disk.Spec.Use
	if (v.osd == nil || v.osd.Leaving == (use != api.DiskCeph)) && (v.table == nil || v.table.Leaving == (use != api.DiskCephDB)) {
		st.ObservedGeneration = max(v.disk.Meta.Generation, 1)
	}
	if v.found != nil || v.osd == nil {
		st.Encrypted = v.osd != nil && v.found.Encrypted && v.found.UUID == v.osd.UUID
	}
	if v.osd == nil {
		st.DeviceClass = ""
	} else if c := v.round.Seen.Cluster; c != nil {
		st.DeviceClass = ""
		if o := storage.OSDOf(*c, v.osd.UUID); o != nil {
			st.DeviceClass = api.DeviceClass(o.Class)
		}
	}
	switch {
	case v.osd == nil && v.table != nil:
		return databases(st, v)
	case v.osd != nil && v.osd.Leaving:
		return leaving(st, v)
	case v.osd != nil:
		return member(st, v)
	}
	return free(st, v)
}

// free returns the status of a disk that is not Ceph's. Its reason is what keeps
// Ceph from using it.
func free(st api.DiskStatus, v diskView) api.DiskStatus {
	b := v.block
	wanted := v.disk.Spec.Use == api.DiskCeph || v.disk.Spec.Use == api.DiskCephDB
	use := string(api.DiskCeph)
	if wanted {
		use = string(v.disk.Spec.Use)
	}
	switch {
	case b == nil:
		st.State, st.Reason = api.DiskFailed, "the disk was not found on its node"
	case b.Held != "":
		st.State, st.Reason = api.DiskInUse, b.Held
	case b.Holds != "" && (!wanted || !v.disk.Spec.Wipe):
		st.State, st.Reason = api.DiskInUse, b.Holds+"; to erase it: basalt disk use "+v.disk.Meta.Name+" "+use+" --wipe"
	case b.Holds != "":
		st.State, st.Reason = api.DiskInUse, b.Holds+"; it will be erased"
	default:
		st.State = api.DiskFree
	}
	switch {
	case !wanted || st.Reason != "":
	case v.off:
		st.Reason = "Ceph is not enabled: basalt ceph enable"
	case !v.dbReady:
		st.Reason = "the disk for its database is not used for databases: basalt disk use DISK ceph-db"
	}
	return st
}

// member returns the status of a disk that is in Ceph, or about to be.
func member(st api.DiskStatus, v diskView) api.DiskStatus {
	c := v.round.Seen.Cluster
	st.State = api.DiskPreparing
	if v.osd.Taken {
		st.State = api.DiskFailed
	}
	if v.found == nil {
		st.Reason = "it has not been inspected yet"
		if v.block != nil && v.block.Held != "" {
			st.State, st.Reason = api.DiskFailed, v.block.Held
		}
		return st
	}
	if v.found.Made {
		st.Osd = int64(v.found.ID)
	}
	err := v.round.Failed[v.osd.UUID]
	switch {
	case v.block == nil:
		st.State, st.Reason = api.DiskFailed, "the disk was not found on its node"
	case refused(v) != "":
		st.State, st.Reason = api.DiskFailed, refused(v)
	case err != nil:
		st.Reason = storage.Reason(err.Error())
		if !passing(err) {
			st.State = api.DiskFailed
		}
	case c == nil:
		st.Reason = "the Ceph cluster is not reachable"
		if v.found.Running && v.disk.Status.State == api.DiskReady {
			st.State = api.DiskReady // as far as is known
		}
	case v.found.Made && !v.found.Running:
		st.Reason = "its OSD daemon was not running and was started"
	case !v.found.Made:
		st.State, st.Reason = api.DiskPreparing, "it is being prepared"
	case storage.OSDOf(*c, v.osd.UUID) == nil || !storage.OSDOf(*c, v.osd.UUID).Up:
		st.Reason = "its OSD daemon is not up yet"
	default:
		st.State = api.DiskReady
	}
	return st
}

// leaving returns the status of a disk that is being removed from Ceph.
func leaving(st api.DiskStatus, v diskView) api.DiskStatus {
	c := v.round.Seen.Cluster
	st.State = api.DiskDraining
	if v.found != nil && v.found.Made {
		st.Osd = int64(v.found.ID)
	}
	switch {
	case v.begun && v.found != nil && !v.found.Made && v.found.UUID != v.osd.UUID:
		return free(st, v)
	case c == nil || v.found == nil:
		st.Reason = "the Ceph cluster is not reachable"
	case storage.OSDOf(*c, v.osd.UUID) != nil && storage.OSDOf(*c, v.osd.UUID).Safe:
		st.Reason = "its data was moved to other disks; it is being removed from Ceph"
	case storage.OSDOf(*c, v.osd.UUID) != nil:
		st.Reason = "its data is being moved to other disks"
	case v.found.Made || v.found.Mapped || v.found.UUID == v.osd.UUID && v.found.Content != deploy.Other:
		st.Reason = "it is being erased"
	default:
		return free(st, v)
	}
	return st
}

// databases returns the status of a disk that has partitions for databases, is to have
// them, or is being released.
func databases(st api.DiskStatus, v diskView) api.DiskStatus {
	f, err := v.parted, v.round.Failed[v.table.UUID]
	ours := f != nil && f.Content == deploy.Parted && f.UUID == v.table.UUID
	if ours {
		st.FreeBytes = f.FreeBytes
	}
	st.State = api.DiskPreparing
	switch {
	case v.block == nil:
		st.State, st.Reason = api.DiskFailed, "the disk was not found on its node"
	case v.table.Leaving && ours && len(f.Parts) > 0:
		st.State, st.Reason = api.DiskDraining, fmt.Sprintf("it still has the databases of other disks (%d): release these first", len(f.Parts))
	case v.table.Leaving && ours:
		st.State, st.Reason = api.DiskDraining, "it is being erased"
	case v.table.Leaving:
		return free(st, v)
	case refusal(v.round, v.table.UUID) != "":
		st.State, st.Reason = api.DiskFailed, refusal(v.round, v.table.UUID)
	case err != nil:
		st.State, st.Reason = api.DiskFailed, storage.Reason(err.Error())
	case ours:
		st.State = api.DiskReady
	case f == nil && v.block.Held != "":
		st.State, st.Reason = api.DiskFailed, v.block.Held
	default:
		st.Reason = "it is being prepared"
	}
	return st
}

func refused(v diskView) string { return refusal(v.round, v.osd.UUID) }

// refusal returns why nothing is done with the disk of that UUID.
func refusal(r deploy.Round, uuid string) string {
	for _, a := range r.Did {
		if a.Do == deploy.Refuse && a.Name == uuid {
			return storage.Reason(a.Why)
		}
	}
	return ""
}

// passing reports whether an error is not about the disk, but because the monitors
// were busy or unreachable.
func passing(err error) bool {
	return errors.Is(err, command.ErrTimeout) || command.Is(err, syscall.ETIMEDOUT) || command.Is(err, syscall.EAGAIN)
}
