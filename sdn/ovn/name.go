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
	// Owner is the cluster that a row belongs to. Rows without it are never
	// changed.
	Owner = "basalt"
	// Of is the ID of the object that the row belongs to.
	Of = "basalt-of"
	// revisionKey is the key of the revision of the last change, on one row; see
	// Controller.write.
	revisionKey = "basalt-revision"
)

// Names in OVN. Those of ports are in package sdn.
const (
	// AllPorts is the port group of every instance's port: with the drops that no
	// security group can override, and the default drop.
	AllPorts = "basalt_ports"
	// MetadataPorts is the port group of every network's metadata port, from which
	// the node connects to guests.
	MetadataPorts = "basalt_metadata"
	// Forbidden4 and Forbidden6 are address sets.
	Forbidden4 = "basalt_forbidden4"
	Forbidden6 = "basalt_forbidden6"
)

// SwitchName returns the name of a network's logical switch.
func SwitchName(n api.NetworkID) string { return string(n) }

// ExternalSwitchName returns the name of an external network's logical switch.
func ExternalSwitchName(x api.ExternalNetworkID) string { return string(x) }

// localnetName returns the name of an external network's port to the physical
// one.
func localnetName(x api.ExternalNetworkID) string { return string(x) + "-physical" }

// RouterName returns the name of a project's logical router.
func RouterName(p api.ProjectID) string { return "router-" + string(p) }

// RouterPortName returns the name of the router's port in a network, or in the
// external one.
func RouterPortName(p api.ProjectID, network string) string { return RouterName(p) + "-" + network }

// redirectName returns the name of the port that OVN derives from a router's
// external port; the router's traffic leaves on the node that claims it.
func redirectName(routerPort string) string { return "cr-" + routerPort }

// BranchName returns the name of a project's logical router to another
// external network.
func BranchName(p api.ProjectID, x api.ExternalNetworkID) string {
	return "branch-" + string(p) + "-" + string(x)
}

// switchPortName returns the name of the switch's port that is connected to
// RouterPortName.
func switchPortName(p api.ProjectID, network string) string { return network + "-" + RouterName(p) }

// GroupName returns the name of a security group's port group. OVN derives the
// address sets NAME_ip4 and NAME_ip6 from it.
func GroupName(g api.SecurityGroupID) string { return identifier(string(g)) }

// identifier replaces what is not allowed in a match: all but letters, digits,
// underscores.
func identifier(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
}

// routerMACs is the first byte of Basalt's own MACs; no instance's MAC has it
// (sdn.RouterMACs).
const routerMACs = sdn.RouterMACs

// MAC returns a locally administered MAC that is derived from the arguments.
func MAC(what ...string) string {
	h := sha256.Sum256([]byte(strings.Join(what, "/")))
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", routerMACs, h[0], h[1], h[2], h[3], h[4])
}

// outsideMAC returns the MAC of a project's router in an external network: all
// of the project's traffic there is from and to it.
func outsideMAC(p api.ProjectID, x api.ExternalNetworkID) string {
	return MAC("router", string(p), string(x))
}

// MetadataMAC returns the MAC of the network's metadata port.
func MetadataMAC(n api.NetworkID) string { return MAC("metadata", string(n)) }

// space is the namespace of Basalt's UUIDs (RFC 4122, section 4.3).
var space = uuid.NewSHA1(uuid.NameSpaceURL, []byte("basalt:ovn"))

// rowID returns the UUID of the cluster's row with that purpose in the table.
func rowID(cluster, table, name string) string {
	return uuid.NewSHA1(space, []byte(cluster+"\x00"+table+"\x00"+name)).String()
}

// bareAddresses returns "MAC ip4 ip6", the addresses of a port.
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
