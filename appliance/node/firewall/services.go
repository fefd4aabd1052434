package firewall

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Ports are the ports on which the node listens for others, as it is configured. 0: it
// does not.
type Ports struct {
	API, SSHGateway, AppGateway uint16
	Peers                       []uint16            // for other nodes
	OVN, Ceph                   []hostnet.PortRange // empty: the node has none
	// Encryption are the ports of encrypted tunnels (UDP); empty: tunnels are not encrypted.
	Encryption []hostnet.PortRange
	// EncryptionDevices are the interfaces on which their packets arrive decrypted.
	EncryptionDevices []string
	// EncapSet is set if the end of the tunnels is configured as an address, which may
	// be on any link, instead of by role tunnel.
	EncapSet bool
}

// Senders are those from whom a service accepts packets.
type Senders string

// The senders.
const (
	Anyone Senders = "anyone"
	Nodes  Senders = "nodes" // of this cluster
)

// Service is a service of a node that listens on links with a role.
type Service struct {
	Name     string
	Protocol string // tcp or udp
	Ports    []hostnet.PortRange
	Roles    []hostnet.Role
	Devices  []string // besides the links with the roles
	From     Senders
	Sources  []netip.Prefix // further limits the senders; empty: it does not
}

// Ports that are not configurable.
const (
	sshPort    = 22
	genevePort = 6081 // RFC 8926, section 3.3
)

// Services returns the services of the node by which Basalt is reached, and those that
// the operator declares. Live migrations and copies of disks are streams of the peer
// port; they have no port of their own.
func Services(n *hostnet.Network, p Ports) []Service {
	management := []hostnet.Role{hostnet.Management}
	between := []hostnet.Role{hostnet.Management, hostnet.Storage}
	tunnel := management
	if len(n.WithRole(hostnet.Tunnel)) > 0 {
		tunnel = []hostnet.Role{hostnet.Tunnel}
	}
	if p.EncapSet {
		tunnel = []hostnet.Role{hostnet.Management, hostnet.Storage, hostnet.Tunnel}
	}
	all := []Service{{Name: "SSH", Protocol: "tcp", Ports: one(sshPort), Roles: management, From: Anyone}}
	for _, s := range []struct {
		name string
		port uint16
	}{{"API and portal", p.API}, {"SSH gateway", p.SSHGateway}, {"app gateway", p.AppGateway}} {
		if s.port != 0 {
			all = append(all, Service{Name: s.name, Protocol: "tcp", Ports: one(s.port), Roles: management, From: Anyone})
		}
	}
	if len(p.Peers) > 0 {
		var ports []hostnet.PortRange
		for _, port := range p.Peers {
			ports = append(ports, one(port)...)
		}
		// A node that joins is not known before it has used this port.
		all = append(all, Service{Name: "other nodes", Protocol: "tcp", Ports: ports, Roles: between, From: Anyone})
		if len(p.OVN) > 0 {
			all = append(all, Service{Name: "OVN databases", Protocol: "tcp", Ports: p.OVN, Roles: between, From: Nodes},
				Service{Name: "tunnels", Protocol: "udp", Ports: one(genevePort), Roles: tunnel, Devices: p.EncryptionDevices, From: Nodes})
		}
		if len(p.Encryption) > 0 {
			all = append(all, Service{Name: "encrypted tunnels", Protocol: "udp", Ports: p.Encryption, Roles: tunnel, From: Nodes})
		}
		if len(p.Ceph) > 0 {
			all = append(all, Service{Name: "Ceph", Protocol: "tcp", Ports: p.Ceph, Roles: between, From: Nodes})
		}
	}
	if n.Firewall != nil {
		for _, a := range n.Firewall.Allow {
			all = append(all, Service{Name: "declared", Protocol: a.Protocol, Ports: a.Ports, Roles: a.LinkRoles(), From: Anyone, Sources: a.From})
		}
	}
	return all
}

func one(port uint16) []hostnet.PortRange { return []hostnet.PortRange{{First: port, Last: port}} }
