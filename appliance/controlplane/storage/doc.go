// Package storage is the leader's part of the cluster's storage: it decides which disks
// and nodes Ceph's daemons use, and reports the cluster's status. The nodes' part,
// which reports disks and runs the daemons, is appliance/node/storage. Decisions about
// the daemons themselves are made in sds/ceph/deploy.
//
//	lsblk ─► Disk objects ──spec.use──┐
//	CephCluster (spec, assignment) ───┴─► leader: decide ─► Bootstrap ─► every node:
//	      ▲                                                     intent ─► deploy ─► Disk.status
//	      └──────────── explain ◄─ survey ◄─ leader                          └─► pool "ceph"
//
// The states of a disk in its object:
//
//	Free ─(use: ceph)─► Preparing ─► Ready ─(use: nothing)─► Draining ─► Free
//	  │ InUse: mounted, or it has content (then it is used only with wipe)
//	  └ Failed: refused, or not found any more
//
// The states of the cluster in the Bootstrap: none ─enabled─► FSID, keys ─quorum─►
// Exists ─disabled, no images─► Dismantle ─no OSDs─► none, its FSID is in Retired. A
// node removes its part of a cluster only when that cluster is listed in Retired, never
// because an object is missing.
//
// The Bootstrap is stored in the only object of the internal kind CephKeys, which the
// API neither returns nor accepts. Its keys are protected like the store's files, as
// are those of the volumes' ring, which seals the keys of encrypted OSDs.
package storage

import (
	"context"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Pool is the name in Ceph of the pool ceph; it contains volumes and images. Those of
// the pools of a device class begin with it.
const Pool = "basalt"

// Ceph is the internal object that all nodes watch.
type Ceph struct {
	Meta api.Meta  `json:"meta"`
	Spec Bootstrap `json:"spec"`
}

// cephID is the ID of the only Ceph object.
const cephID = "cephkeys-cluster"

// Bootstrap is the leader's decision about the Ceph cluster.
type Bootstrap struct {
	Generation int         `json:"generation,omitempty"` // the number of clusters so far
	FSID       string      `json:"fsid,omitempty"`       // empty if there is no cluster
	Keys       deploy.Keys `json:"keys"`
	Port       uint16      `json:"port,omitempty"` // of the monitors
	// Exists reports that there was a quorum. Until then the first of Mons founds the
	// cluster.
	Exists bool         `json:"exists,omitempty"`
	Mons   []api.NodeID `json:"mons,omitempty"`
	Mgrs   []api.NodeID `json:"mgrs,omitempty"`
	// Addresses are the monitors' addresses on the storage network, which never change.
	// Empty: Ceph uses the nodes' main path. It is decided when the cluster is created.
	Addresses     map[api.NodeID]netip.Addr `json:"addresses,omitempty"`
	Replicas      int                       `json:"replicas,omitempty"`
	FailureDomain string                    `json:"failureDomain,omitempty"`
	Dismantle     bool                      `json:"dismantle,omitempty"`
	// Class is the device class of the pool ceph; empty: any.
	Class  string      `json:"class,omitempty"`
	Pools  []ClassPool `json:"pools,omitempty"` // sorted by class
	Tables []Table     `json:"tables,omitempty"`
	OSDs   []OSD       `json:"osds,omitempty"` // in the order of their disks' IDs
	// Retired are the clusters that were dismantled, the newest last: a node that still
	// has data of one removes it.
	Retired []Incarnation `json:"retired,omitempty"`
}

// OSD describes how Ceph uses a disk.
type OSD struct {
	Disk api.DiskID `json:"disk"`
	Node api.NodeID `json:"node"`
	UUID string     `json:"uuid"` // a new one each time the disk is added
	Wipe bool       `json:"wipe,omitempty"`
	// Taken reports that the OSD was up at least once. From then on the disk is never
	// wiped.
	Taken   bool `json:"taken,omitempty"`
	Leaving bool `json:"leaving,omitempty"`
	// Class is the device class that the operator has set; empty: the detected one.
	Class string `json:"class,omitempty"`
	// DB is where its database is stored, if not on the disk itself. It never changes.
	DB *deploy.DB `json:"db,omitempty"`
	// Key is the sealed key of an encrypted OSD; empty: its disks are in plain. It never
	// changes, and leaves the store with the OSD, after its disk was erased.
	Key string `json:"key,omitempty"`
}

// Table describes a disk with partitions for the databases of OSDs.
type Table struct {
	Disk api.DiskID `json:"disk"`
	Node api.NodeID `json:"node"`
	UUID string     `json:"uuid"` // a new one each time the disk is added
	Wipe bool       `json:"wipe,omitempty"`
	// Taken reports that the table was created. From then on the disk is never wiped.
	Taken   bool `json:"taken,omitempty"`
	Leaving bool `json:"leaving,omitempty"`
}

// ClassPool is an additional pool, of a device class.
type ClassPool struct {
	Class    string `json:"class"`
	Replicas int    `json:"replicas"`
	// Leaving means that the pool is deleted when it is empty, and Drop that it is
	// deleted now: nodes do not use it any more.
	Leaving bool `json:"leaving,omitempty"`
	Drop    bool `json:"drop,omitempty"`
}

// Incarnation identifies one of the clusters with the same FSID.
type Incarnation struct {
	FSID       string `json:"fsid"`
	Generation int    `json:"generation"`
}

// Incarnation returns the identity of the cluster that f describes.
func (f Bootstrap) Incarnation() Incarnation { return Incarnation{f.FSID, f.Generation} }

// OSD returns the OSD of the disk, or nil.
func (f Bootstrap) OSD(disk api.DiskID) *OSD {
	for i := range f.OSDs {
		if f.OSDs[i].Disk == disk {
			return &f.OSDs[i]
		}
	}
	return nil
}

// Store accepts the leader's writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}
