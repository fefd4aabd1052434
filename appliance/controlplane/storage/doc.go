// Package storage is the leader's part in the cluster's storage: it decides which
// disks and nodes Ceph's daemons are for, and reports how the cluster is. The nodes'
// part, which reports disks and runs the daemons, is appliance/node/storage.
// Decisions about the daemons themselves are made in sds/ceph/deploy.
//
//	lsblk ─► Disk objects ──spec.use──┐
//	CephCluster (spec, assignment) ───┴─► leader: decide ─► Founding ─► every node:
//	      ▲                                                     intent ─► deploy ─► Disk.status
//	      └──────────── explain ◄─ survey ◄─ leader                          └─► pool "ceph"
//
// A disk, as its object says:
//
//	Free ─(use: ceph)─► Preparing ─► Ready ─(use: nothing)─► Draining ─► Free
//	  │ InUse: mounted, or something is on it (then only with wipe)
//	  └ Failed: refused, or gone
//
// The cluster, as the Founding says: none ─enabled─► FSID, keys ─quorum─► Exists
// ─switched off, no images─► Dismantle ─no OSDs─► none, its FSID is Retired. A
// node removes what it has of a cluster when that is retired, and never else:
// not when an object is missing.
//
// One internal kind, which the API neither shows nor takes: the only CephKeys
// object holds the Founding. Its keys are as safe as the store's files are, as
// those of the volumes' ring beside it.
package storage

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Pool is the only pool of the Ceph cluster, with volumes and images.
const Pool = "basalt"

// Ceph is the internal object that all nodes follow.
type Ceph struct {
	Meta api.Meta `json:"meta"`
	Spec Founding `json:"spec"`
}

// cephID is the id of the only Ceph object.
const cephID = "cephkeys-cluster"

// Founding is what the leader decided about the Ceph cluster.
type Founding struct {
	Generation int         `json:"generation,omitempty"` // how many there were
	FSID       string      `json:"fsid,omitempty"`       // empty: there is none
	Keys       deploy.Keys `json:"keys"`
	Port       uint16      `json:"port,omitempty"` // of the monitors
	// Exists: there was a quorum. Until then the first of Mons founds.
	Exists        bool         `json:"exists,omitempty"`
	Mons          []api.NodeID `json:"mons,omitempty"`
	Mgrs          []api.NodeID `json:"mgrs,omitempty"`
	Replicas      int          `json:"replicas,omitempty"`
	FailureDomain string       `json:"failureDomain,omitempty"`
	Dismantle     bool         `json:"dismantle,omitempty"`
	OSDs          []OSD        `json:"osds,omitempty"` // in the order of their disks' ids
	// Retired are clusters that were dismantled, the newest last: whoever still
	// has something of them removes it.
	Retired []Incarnation `json:"retired,omitempty"`
}

// OSD is a disk's part in Ceph.
type OSD struct {
	Disk api.DiskID `json:"disk"`
	Node api.NodeID `json:"node"`
	UUID string     `json:"uuid"` // another one each time that the disk is taken
	Wipe bool       `json:"wipe,omitempty"`
	// Taken: it was up once. From then on it is never wiped.
	Taken   bool `json:"taken,omitempty"`
	Leaving bool `json:"leaving,omitempty"`
}

// Incarnation names one cluster among those that had its FSID.
type Incarnation struct {
	FSID       string `json:"fsid"`
	Generation int    `json:"generation"`
}

// Incarnation returns the name of the cluster that f describes.
func (f Founding) Incarnation() Incarnation { return Incarnation{f.FSID, f.Generation} }

// OSD returns the disk's part, or nil.
func (f Founding) OSD(disk api.DiskID) *OSD {
	for i := range f.OSDs {
		if f.OSDs[i].Disk == disk {
			return &f.OSDs[i]
		}
	}
	return nil
}

// Store takes what the leader writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}
