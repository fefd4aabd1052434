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
	address  netip.Addr        // of a node that is alone
	dir      string            // of the node's Ceph
	blocks   map[string]Block  // its disks, by id
	settings map[string]string // more of ceph.conf
}

// intent is what deploy is told on one node.
func intent(f storage.Founding, nodes map[string]api.Node, disks map[string]api.Disk, at place) deploy.Intent {
	in := deploy.Intent{
		FSID: f.FSID, Exists: f.Exists, Dismantle: f.Dismantle, FailureDomain: f.FailureDomain, Settings: at.settings,
		Pools: []deploy.Pool{{Name: storage.Pool, Replicas: f.Replicas, FailureDomain: f.FailureDomain}},
	}
	for _, m := range f.Mons {
		alone := netip.Addr{}
		if m == at.node {
			alone = at.address
		}
		if a, ok := memberAddress(nodes[string(m)], alone); ok {
			in.Mons = append(in.Mons, deploy.Mon{Node: string(m), Address: netip.AddrPortFrom(a, f.Port)})
		}
	}
	for _, m := range f.Mgrs {
		in.Mgrs = append(in.Mgrs, string(m))
	}
	for _, o := range f.OSDs {
		d := deploy.Disk{Node: string(o.Node), UUID: o.UUID, Wipe: o.Wipe && !o.Taken, Leave: o.Leaving, Path: diskPath(o, disks, at)}
		if b, ok := at.blocks[string(o.Disk)]; o.Node == at.node && ok && b.Held != "" && !o.Taken && !o.Leaving {
			continue // something has begun to use it
		}
		in.Disks = append(in.Disks, d)
	}
	return in
}

// diskPath of an OSD's disk: on its own node as it is found now. One that is
// not there has a path that nothing has: its old one may be another disk's.
func diskPath(o storage.OSD, disks map[string]api.Disk, at place) string {
	if o.Node == at.node {
		if b, ok := at.blocks[string(o.Disk)]; ok {
			return b.path()
		}
		return filepath.Join(at.dir, "gone", string(o.Disk))
	}
	d := disks[string(o.Disk)].Status
	return cmp.Or(d.ByID, d.Path, "/dev/unknown")
}

// memberAddress is where a node's monitor is reached: its first path. One that
// is alone has none, and says its own.
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
