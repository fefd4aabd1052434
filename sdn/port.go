package sdn

import (
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// PortID names a port everywhere: in the Topology, in OVN (as the logical
// port's name) and on the tap's interface in Open vSwitch. Lower case, because
// libvirt makes it so.
type PortID string

// PortOf is the id of the instance's n-th network card.
func PortOf(instance api.InstanceID, n int) PortID { return PortID(api.PortName(instance, n)) }

// Instance whose card it is; false for what PortOf did not make.
func (p PortID) Instance() (api.InstanceID, bool) { return api.PortInstance(string(p)) }

// RouterMACs is the first byte of every MAC that the network gives to routers
// and services of its own. No instance's begins with it.
const RouterMACs = 0x0a

// MetadataPort is the logical port behind which a node answers for
// MetadataAddress in the network. It is on every node at once.
func MetadataPort(network api.NetworkID) PortID {
	return PortID("metadata-" + strings.ToLower(string(network)))
}

// HealthAddress is the address from which the health of backends in an IPv4
// network is checked: its last but the broadcast. Nobody else may have it.
func HealthAddress(cidr netip.Prefix) netip.Addr {
	if !cidr.Addr().Is4() || cidr.Bits() > 29 {
		return netip.Addr{}
	}
	return api.HealthAddr(cidr)
}
