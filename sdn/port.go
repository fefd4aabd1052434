package sdn

import (
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// PortID identifies a port everywhere: in the Topology, in OVN (as the logical
// port's name) and on the tap's interface in Open vSwitch. It is in lower
// case, because libvirt converts it so.
type PortID string

// PortOf returns the ID of the instance's n-th network card.
func PortOf(instance api.InstanceID, n int) PortID { return PortID(api.PortName(instance, n)) }

// Instance returns the instance of the card; false for an ID that PortOf
// cannot return.
func (p PortID) Instance() (api.InstanceID, bool) { return api.PortInstance(string(p)) }

// RouterMACs is the first byte of every MAC of the network's own routers and
// services. No instance's MAC starts with it.
const RouterMACs = 0x0a

// MetadataPort returns the logical port behind which a node serves
// MetadataAddress in the network. It is on every node at once.
func MetadataPort(network api.NetworkID) PortID {
	return PortID("metadata-" + strings.ToLower(string(network)))
}

// HealthAddress returns the source address of the health checks of backends in
// an IPv4 network: the last one before the broadcast address. It must not be
// assigned otherwise.
func HealthAddress(cidr netip.Prefix) netip.Addr {
	if !cidr.Addr().Is4() || cidr.Bits() > 29 {
		return netip.Addr{}
	}
	return api.HealthAddr(cidr)
}
