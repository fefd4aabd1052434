package storage

import (
	"cmp"
	"net"
	"net/netip"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// place is a node's own part of an intent.
type place struct {
	node     api.NodeID
	address  netip.Addr                   // address of a node that is alone
	storage  netip.Addr                   // address on the storage network
	dir      string                       // directory of the node's Ceph
	blocks   map[string]Block             // the node's disks, by ID
	settings map[string]string            // additional settings for ceph.conf
	keys     map[string]deploy.Encryption // of the encrypted OSDs of this node, by UUID
}

// intent returns the input of deploy on one node.
func intent(f storage.Bootstrap, nodes map[string]api.Node, disks map[string]api.Disk, at place) deploy.Intent {
	in := deploy.Intent{
		FSID: f.FSID, Exists: f.Exists, Dismantle: f.Dismantle, FailureDomain: f.FailureDomain, Settings: at.settings,
	}
	for _, p := range f.AllPools() {
		if p.Drop {
			in.Drop = append(in.Drop, p.Pool.Name)
		} else {
			in.Pools = append(in.Pools, p.Pool)
		}
	}
	for _, m := range f.Mons {
		alone := netip.Addr{}
		if m == at.node {
			alone = at.address
		}
		a, ok := f.Addresses[m]
		if len(f.Addresses) == 0 {
			a, ok = memberAddress(nodes[string(m)], alone)
		}
		if ok {
			in.Mons = append(in.Mons, deploy.Mon{Node: string(m), Address: netip.AddrPortFrom(a, f.Port)})
		}
	}
	if len(f.Addresses) > 0 {
		in.Address = at.storage
	}
	for _, m := range f.Mgrs {
		in.Mgrs = append(in.Mgrs, string(m))
	}
	for _, o := range f.OSDs {
		d := deploy.Disk{Node: string(o.Node), UUID: o.UUID, Wipe: o.Wipe && !o.Taken, Leave: o.Leaving, Class: o.Class, DB: o.DB, Path: diskPath(o.Disk, o.Node, disks, at)}
		if o.Key != "" {
			d.Crypt = &deploy.Encryption{}
			*d.Crypt = at.keys[o.UUID]
		}
		if b, ok := at.blocks[string(o.Disk)]; o.Node == at.node && ok && b.Held != "" && !o.Taken && !o.Leaving {
			continue // something else uses the disk now
		}
		in.Disks = append(in.Disks, d)
	}
	for _, t := range f.Tables {
		if b, ok := at.blocks[string(t.Disk)]; t.Node == at.node && (!ok || b.Held == "" || t.Taken) {
			in.Tables = append(in.Tables, deploy.Table{
				Node: string(t.Node), UUID: t.UUID, Wipe: t.Wipe && !t.Taken, Taken: t.Taken, Leave: t.Leaving, Path: diskPath(t.Disk, t.Node, disks, at),
			})
		}
	}
	return in
}

// diskPath returns the path of a disk of Ceph: on its own node, the path where it is
// found now. A missing disk has a path that does not exist, because its old one may
// be another disk's.
func diskPath(disk api.DiskID, node api.NodeID, disks map[string]api.Disk, at place) string {
	if node == at.node {
		if b, ok := at.blocks[string(disk)]; ok {
			return b.path()
		}
		return filepath.Join(at.dir, "gone", string(disk))
	}
	d := disks[string(disk)].Status
	return cmp.Or(d.ByID, d.Path, "/dev/unknown")
}

// memberAddress returns the address of a node's monitor: its first peer address, or
// alone for a node that has none.
func memberAddress(n api.Node, alone netip.Addr) (netip.Addr, bool) {
	if len(n.Spec.PeerAddresses) == 0 {
		return alone, alone.IsValid()
	}
	host, _, err := net.SplitHostPort(n.Spec.PeerAddresses[0])
	if err != nil {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(host)
	return a.Unmap().WithZone(""), err == nil
}
