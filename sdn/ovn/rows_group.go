package ovn

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// Priorities of ACLs, the highest first.
const (
	priorityNever     = 4000 // what no port may send
	priorityForbidden = 3000
	priorityNeeded    = 2500 // what every port needs: DHCP, metadata, DNS
	priorityAllow     = 2000 // security groups
	priorityDefault   = 1000
)

// everyPort returns the ACLs of every port, in the order in which a packet
// meets them: from-lport is what an instance sends. DHCP requests may only go
// to where OVN answers them (its put_dhcp_opts flows): here those to broadcast
// addresses; see renewal for those to the network's own server.
func everyPort() []nb.ACL {
	from, to := "inport == @"+AllPorts+" && ", "outport == @"+AllPorts+" && "
	never := func(name, match string) nb.ACL {
		return nb.ACL{Name: ptr(name), Direction: nb.ACLDirectionFromLport, Priority: priorityNever, Action: nb.ACLActionDrop, Match: from + match}
	}
	return []nb.ACL{
		never("dhcp server", "udp.src == 67 && udp.dst == 68"),
		never("dhcpv6 server", "udp.src == 547 && udp.dst == 546"),
		// OVN passes router advertisements before any ACL: see filter_unsafe.go.
		never("redirect6", "icmp6.type == 137"),
		never("redirect4", "icmp4.type == 5"),
		{Name: ptr("forbidden4"), Direction: nb.ACLDirectionFromLport, Priority: priorityForbidden, Action: nb.ACLActionDrop, Match: from + "ip4.dst == $" + Forbidden4},
		{Name: ptr("forbidden6"), Direction: nb.ACLDirectionFromLport, Priority: priorityForbidden, Action: nb.ACLActionDrop, Match: from + "ip6.dst == $" + Forbidden6},
		{Name: ptr("dhcp"), Direction: nb.ACLDirectionFromLport, Priority: priorityNeeded, Action: nb.ACLActionAllow, Match: from + "ip4.dst == 255.255.255.255 && udp.src == 68 && udp.dst == 67"},
		{Name: ptr("dhcpv6"), Direction: nb.ACLDirectionFromLport, Priority: priorityNeeded, Action: nb.ACLActionAllow, Match: from + "ip6.dst == ff02::1:2 && udp.src == 546 && udp.dst == 547"},
		{Name: ptr("metadata"), Direction: nb.ACLDirectionFromLport, Priority: priorityNeeded, Action: nb.ACLActionAllowRelated,
			Match: from + "ip4.dst == " + sdn.MetadataAddress.String() + " && tcp.dst == {53, 80}"},
		{Name: ptr("names"), Direction: nb.ACLDirectionFromLport, Priority: priorityNeeded, Action: nb.ACLActionAllowRelated,
			Match: from + "ip4.dst == " + sdn.MetadataAddress.String() + " && udp.dst == 53"},
		// The node opens connections to guests for the SSH and app gateways. Port
		// security reserves these addresses, but hosts on external networks can send
		// from them; and a packet that the node only forwarded has another address.
		{Name: ptr("gateway"), Direction: nb.ACLDirectionToLport, Priority: priorityNeeded, Action: nb.ACLActionAllowRelated,
			Match: to + "inport == @" + MetadataPorts + " && (ip4.src == " + sdn.MetadataAddress.String() + " || ip6.src == " + sdn.MetadataAddress6.String() + ") && tcp"},
		{Name: ptr("default out"), Direction: nb.ACLDirectionFromLport, Priority: priorityDefault, Action: nb.ACLActionDrop, Match: from + "ip"},
		{Name: ptr("default in"), Direction: nb.ACLDirectionToLport, Priority: priorityDefault, Action: nb.ACLActionDrop, Match: to + "ip"},
	}
}

func (r *rower) forbidden() {
	var four, six []string
	for _, p := range r.t.Forbidden {
		if p.Addr().Is4() {
			four = append(four, p.String())
		} else {
			six = append(six, p.String())
		}
	}
	for _, s := range []struct {
		name      string
		addresses []string
	}{{Forbidden4, four}, {Forbidden6, six}} {
		r.sets = append(r.sets, unit{root: &nb.AddressSet{UUID: r.id(nb.AddressSetTable, s.name), Name: s.name, Addresses: s.addresses, ExternalIDs: r.ids("")}})
	}
}

func (r *rower) securityGroups() {
	members := map[api.SecurityGroupID][]string{}
	all, metadata := make([]string, 0, len(r.t.Ports)), make([]string, 0, len(r.t.Networks))
	for _, n := range r.t.Networks {
		metadata = append(metadata, r.portID(sdn.MetadataPort(n.ID)))
	}
	for _, p := range r.t.Ports {
		id := r.portID(p.ID)
		all = append(all, id)
		for _, g := range p.SecurityGroups {
			members[g] = append(members[g], id)
		}
	}
	r.group(MetadataPorts, "", metadata, nil) // everyPort refers to it
	r.group(AllPorts, "", all, everyPort())
	for _, g := range r.t.SecurityGroups {
		var acls []nb.ACL
		for i, rule := range g.Rules {
			for _, m := range matches(g.ID, rule) {
				acl := nb.ACL{Name: ptr(fmt.Sprintf("%s rule %d", g.ID, i+1)), Direction: nb.ACLDirectionToLport, Priority: priorityAllow, Action: nb.ACLActionAllowRelated, Match: m}
				if rule.Direction == api.Egress {
					acl.Direction = nb.ACLDirectionFromLport
				}
				acls = append(acls, acl)
			}
		}
		r.group(GroupName(g.ID), string(g.ID), members[g.ID], acls)
	}
}

func (r *rower) group(name, of string, ports []string, acls []nb.ACL) {
	pg := &nb.PortGroup{UUID: r.id(nb.PortGroupTable, name), Name: name, Ports: ports, ExternalIDs: r.ids(of)}
	u := unit{root: pg}
	for _, a := range acls {
		// An ACL's UUID is derived from its content: changing a rule replaces it,
		// and a reordered rule stays.
		a.UUID = r.id(nb.ACLTable, name+"\x00"+a.Direction+"\x00"+a.Match)
		a.ExternalIDs = r.ids(of)
		if slices.Contains(pg.ACLs, a.UUID) {
			continue // duplicate
		}
		pg.ACLs = append(pg.ACLs, a.UUID)
		u.children = append(u.children, &a)
	}
	r.groups = append(r.groups, u)
}

// matches returns the matches of a rule: one per address family that it
// applies to.
func matches(g api.SecurityGroupID, rule sdn.Rule) (all []string) {
	port, peer := "outport", "src"
	if rule.Direction == api.Egress {
		port, peer = "inport", "dst"
	}
	for _, ip := range []string{"ip4", "ip6"} {
		m := port + " == @" + GroupName(g) + " && " + ip
		switch {
		case rule.Peer.IsValid() && rule.Peer.Addr().Is4() != (ip == "ip4"),
			rule.Protocol == api.ProtocolICMP && ip == "ip6", rule.Protocol == api.ProtocolICMP6 && ip == "ip4":
			continue
		case rule.Group != "":
			m += fmt.Sprintf(" && %s.%s == $%s_%s", ip, peer, GroupName(rule.Group), ip)
		case rule.Peer.IsValid() && rule.Peer.Bits() > 0:
			m += fmt.Sprintf(" && %s.%s == %s", ip, peer, prefix(rule.Peer))
		}
		switch rule.Protocol {
		case api.ProtocolTCP, api.ProtocolUDP:
			m += " && " + string(rule.Protocol)
			if rule.FirstPort != 0 && rule.FirstPort == rule.LastPort {
				m += fmt.Sprintf(" && %s.dst == %d", rule.Protocol, rule.FirstPort)
			} else if rule.FirstPort != 0 {
				m += fmt.Sprintf(" && %d <= %s.dst <= %d", rule.FirstPort, rule.Protocol, rule.LastPort)
			}
		case api.ProtocolICMP:
			m += " && icmp4"
		case api.ProtocolICMP6:
			m += " && icmp6"
		}
		all = append(all, m)
	}
	return all
}

func prefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
