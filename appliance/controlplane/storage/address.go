package storage

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// storageAddress returns the address of the node's link with role storage.
func storageAddress(n api.Node) (netip.Addr, bool) {
	a, err := netip.ParseAddr(n.Status.StorageAddress)
	return a, err == nil && !a.IsUnspecified() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
}

// onStorage reports whether a new cluster can use the storage network: every node has a
// link for it, with an address of the same family.
func onStorage(nodes map[string]api.Node) bool {
	var one netip.Addr
	for _, n := range nodes {
		if n.Meta.DeletedAt != nil {
			continue
		}
		a, ok := storageAddress(n)
		if !ok || one.IsValid() && a.Is4() != one.Is4() {
			return false
		}
		one = a
	}
	return one.IsValid()
}

// addressed returns the monitors that have an address on the storage network, and their
// addresses. A monitor keeps the address that it was created with.
func (f Bootstrap) addressed(mons []api.NodeID, nodes map[string]api.Node) ([]api.NodeID, map[api.NodeID]netip.Addr) {
	var have []api.NodeID
	addresses := map[api.NodeID]netip.Addr{}
	for _, m := range mons {
		a, ok := f.Addresses[m]
		if !ok {
			a, ok = storageAddress(nodes[string(m)])
		}
		if ok {
			have, addresses[m] = append(have, m), a
		}
	}
	return have, addresses
}
