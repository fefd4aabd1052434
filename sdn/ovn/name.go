package ovn

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/google/uuid"
)

// Keys of external_ids.
const (
	// Owner is the cluster whose row it is. We touch no row without it.
	Owner = "basalt"
	// Of is the id of the object that the row was made for.
	Of = "basalt-of"
	// revision of the last change, on one row; see Controller.settle.
	revisionKey = "basalt-revision"
)

// Names in OVN. Those of ports are in package sdn.
const (
	// AllPorts is the port group of every instance's port: what is dropped
	// whatever a security group says, and what is dropped unless one allows it.
	AllPorts = "basalt_ports"
	// Forbidden4 and Forbidden6 are address sets.
	Forbidden4 = "basalt_forbidden4"
	Forbidden6 = "basalt_forbidden6"
)

// SwitchName of a network's logical switch.
func SwitchName(n api.NetworkID) string { return string(n) }

// ExternalSwitchName of an external network's logical switch.
func ExternalSwitchName(x api.ExternalNetworkID) string { return string(x) }

// localnetName of an external network's port to the physical one.
func localnetName(x api.ExternalNetworkID) string { return string(x) + "-physical" }

// RouterName of a project's logical router.
func RouterName(p api.ProjectID) string { return "router-" + string(p) }

// RouterPortName of the router in a network, or in the external one.
func RouterPortName(p api.ProjectID, network string) string { return RouterName(p) + "-" + network }

// redirectName of the port that OVN makes for a router's port outside; the node
// that claims it is where the router's traffic leaves.
func redirectName(routerPort string) string { return "cr-" + routerPort }

// BranchName of a project's logical router into another external network.
func BranchName(p api.ProjectID, x api.ExternalNetworkID) string {
	return "branch-" + string(p) + "-" + string(x)
}

// switchPortName is the other end of RouterPortName.
func switchPortName(p api.ProjectID, network string) string { return network + "-" + RouterName(p) }

// GroupName of a security group's port group. OVN makes the address sets
// NAME_ip4 and NAME_ip6 with it.
func GroupName(g api.SecurityGroupID) string { return identifier(string(g)) }

// identifier may stand in a match: letters, digits, underscores.
func identifier(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
}

// routerMACs is how MACs of ours begin; no instance's does (sdn.RouterMACs).
const routerMACs = sdn.RouterMACs

// MAC of something of ours, always the same. Locally administered.
func MAC(what ...string) string {
	h := sha256.Sum256([]byte(strings.Join(what, "/")))
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", routerMACs, h[0], h[1], h[2], h[3], h[4])
}

// outsideMAC of a project's router in an external network: all that it sends
// there is from it, and all that is for the project goes to it.
func outsideMAC(p api.ProjectID, x api.ExternalNetworkID) string {
	return MAC("router", string(p), string(x))
}

// MetadataMAC of the network's metadata port.
func MetadataMAC(n api.NetworkID) string { return MAC("metadata", string(n)) }

// space of our UUIDs (RFC 4122, section 4.3).
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("basalt:ovn"))

// rowID is the UUID of the row that cluster has in table for what name says.
func rowID(cluster, table, name string) string {
	return uuid.NewSHA1(space, []byte(cluster+"\x00"+table+"\x00"+name)).String()
}

// bareAddresses is "MAC ip4 ip6", what a port sends from and is reached at.
func bareAddresses(p sdn.Port) string {
	s := p.MAC
	if p.Address4.IsValid() {
		s += " " + p.Address4.String()
	}
	if p.Address6.IsValid() {
		s += " " + p.Address6.String()
	}
	return s
}
