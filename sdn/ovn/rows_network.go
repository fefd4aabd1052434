package ovn

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// leaseSeconds is the lease time of an address. An address is never reassigned
// while its port exists; a long lease lets a guest keep its address while its
// node's ovn-controller is down.
const leaseSeconds = 86400

// Limits of tracked connections. Linux has 262,144 entries on a node of 4 GiB
// or more (nf_conntrack_max).
const (
	connectionsOfAPort   = 65536
	connectionsOfARouter = 131072
)

func (r *rower) network(n sdn.Network) {
	id := string(n.ID)
	ls := &nb.LogicalSwitch{UUID: r.id(nb.LogicalSwitchTable, id), Name: SwitchName(n.ID), ExternalIDs: r.ids(id)}
	// Limits the tracked connections of one port, so that one guest cannot fill
	// the node's table. OVN supports the option from 24.09 on; older versions
	// ignore it.
	ls.OtherConfig = map[string]string{"ct-zone-limit": strconv.Itoa(connectionsOfAPort)}
	u := unit{root: ls}
	add := func(p *nb.LogicalSwitchPort) {
		ls.Ports = append(ls.Ports, p.UUID)
		u.children = append(u.children, p)
	}
	dhcp4, dhcp6 := r.dhcp4(n), r.dhcp6(n)
	for _, p := range r.ports[n.ID] {
		add(r.port(p, dhcp4, dhcp6))
	}
	add(r.metadata(n))
	if n.CIDR4.IsValid() {
		renewal := r.renewal(n)
		ls.ACLs = []string{renewal.UUID}
		u.children = append(u.children, renewal)
	}
	if !n.Isolated {
		add(r.routerLink(n.Project, id, nil))
		for _, l := range r.lbs[n.Project] {
			ls.LoadBalancer = append(ls.LoadBalancer, r.id(nb.LoadBalancerTable, string(l.ID)))
		}
	}
	r.switches = append(r.switches, u)
}

// renewal returns the ACL for the renewal of a lease, which is sent to the
// server alone: the gateway.
func (r *rower) renewal(n sdn.Network) *nb.ACL {
	a := &nb.ACL{Name: ptr("dhcp renewal"), Direction: nb.ACLDirectionFromLport, Priority: priorityNeeded, Action: nb.ACLActionAllow,
		Match: "ip4.dst == " + n.Gateway4.String() + " && udp.src == 68 && udp.dst == 67", ExternalIDs: r.ids(string(n.ID))}
	a.UUID = r.id(nb.ACLTable, string(n.ID)+"\x00"+a.Match)
	return a
}

func (r *rower) port(p sdn.Port, dhcp4, dhcp6 *string) *nb.LogicalSwitchPort {
	instance, _ := p.ID.Instance()
	lsp := &nb.LogicalSwitchPort{
		UUID: r.portID(p.ID), Name: string(p.ID), ExternalIDs: r.ids(string(instance)),
		Addresses: []string{bareAddresses(p)}, PortSecurity: []string{bareAddresses(p)}, Options: map[string]string{},
	}
	if p.Hostname != "" {
		lsp.Options["hostname"] = strconv.Quote(p.Hostname) // OVN inserts it into an action as a constant
	}
	if len(p.Nodes) > 0 {
		nodes := make([]string, len(p.Nodes))
		for i, n := range p.Nodes {
			nodes[i] = string(n)
		}
		lsp.Options["requested-chassis"] = strings.Join(nodes, ",")
	}
	if len(p.Nodes) > 1 {
		// The target drops all traffic until the instance has announced itself
		// there, which QEMU does when the instance starts to run.
		lsp.Options["activation-strategy"] = "rarp"
	}
	if p.Address4.IsValid() {
		lsp.Dhcpv4Options = dhcp4
	}
	if p.Address6.IsValid() {
		lsp.Dhcpv6Options = dhcp6
	}
	return lsp
}

// metadata returns the metadata port. It is on every node, so a guest's
// request never leaves its node.
func (r *rower) metadata(n sdn.Network) *nb.LogicalSwitchPort {
	name, address := sdn.MetadataPort(n.ID), sdn.NodeAddress(cmp.Or(n.CIDR4, n.CIDR6))
	return &nb.LogicalSwitchPort{
		UUID: r.portID(name), Name: string(name), Type: "localport", ExternalIDs: r.ids(string(n.ID)),
		Addresses: []string{MetadataMAC(n.ID) + " " + address.String()},
	}
}

// routerLink returns the switch's port that is connected to the project's
// router.
func (r *rower) routerLink(project api.ProjectID, network string, more map[string]string) *nb.LogicalSwitchPort {
	name := switchPortName(project, network)
	p := &nb.LogicalSwitchPort{
		UUID: r.id(nb.LogicalSwitchPortTable, name), Name: name, Type: "router", ExternalIDs: r.ids(string(project)),
		Addresses: []string{"router"}, Options: map[string]string{"router-port": RouterPortName(project, network)},
	}
	for k, v := range more {
		p.Options[k] = v
	}
	return p
}

// dhcp4 returns the DHCPv4 options of the network (ovn-nb(5), DHCP_Options).
func (r *rower) dhcp4(n sdn.Network) *string {
	if !n.CIDR4.IsValid() {
		return nil
	}
	// With option 121 a client ignores option 3 (RFC 3442), so the default route
	// is in both. A route without a next hop is on the link.
	routes := sdn.MetadataAddress.String() + "/32,0.0.0.0"
	o := map[string]string{
		"server_id": n.Gateway4.String(), "server_mac": gatewayMAC(n),
		"lease_time": strconv.Itoa(leaseSeconds), "mtu": strconv.Itoa(n.MTU),
	}
	if !n.Isolated {
		o["router"] = n.Gateway4.String()
		routes += ", 0.0.0.0/0," + n.Gateway4.String()
	}
	o["classless_static_route"] = "{" + routes + "}"
	o["dns_server"] = sdn.MetadataAddress.String()
	if s := addresses(n.DNSServers, netip.Addr.Is4); s != "" {
		o["dns_server"] = "{" + o["dns_server"] + ", " + s + "}"
	}
	if n.Domain != "" {
		o["domain_name"] = strconv.Quote(n.Domain)
	}
	return r.dhcp(n, "4", n.CIDR4, o)
}

func (r *rower) dhcp6(n sdn.Network) *string {
	if !n.CIDR6.IsValid() {
		return nil
	}
	o := map[string]string{"server_id": gatewayMAC(n)}
	if s := addresses(n.DNSServers, netip.Addr.Is6); s != "" {
		o["dns_server"] = "{" + s + "}"
	}
	if n.Domain != "" {
		o["domain_search"] = strconv.Quote(n.Domain)
	}
	return r.dhcp(n, "6", n.CIDR6, o)
}

func (r *rower) dhcp(n sdn.Network, family string, cidr netip.Prefix, options map[string]string) *string {
	row := &nb.DHCPOptions{UUID: r.id(nb.DHCPOptionsTable, string(n.ID)+"/"+family), Cidr: cidr.String(), Options: options, ExternalIDs: r.ids(string(n.ID))}
	r.options = append(r.options, unit{root: row})
	return &row.UUID
}

// addresses joins the addresses for which is returns true: "a, b".
func addresses(as []netip.Addr, is func(netip.Addr) bool) string {
	var s []string
	for _, a := range as {
		if is(a) {
			s = append(s, a.String())
		}
	}
	return strings.Join(s, ", ")
}

func gatewayMAC(n sdn.Network) string { return MAC("router", string(n.Project), string(n.ID)) }

// external adds an external network: one switch with the physical network and
// all routers.
func (r *rower) external(x sdn.ExternalNetwork) {
	id := string(x.ID)
	ls := &nb.LogicalSwitch{
		UUID: r.id(nb.LogicalSwitchTable, id), Name: ExternalSwitchName(x.ID), ExternalIDs: r.ids(id),
		// An ARP request for an unknown address must not be processed by a thousand
		// routers.
		OtherConfig: map[string]string{"broadcast-arps-to-all-routers": "false"},
	}
	local := &nb.LogicalSwitchPort{
		UUID: r.id(nb.LogicalSwitchPortTable, localnetName(x.ID)), Name: localnetName(x.ID), Type: "localnet", ExternalIDs: r.ids(id),
		Addresses: []string{"unknown"}, Options: map[string]string{"network_name": x.Physical},
	}
	if x.VLAN != 0 {
		local.Tag = ptr(x.VLAN)
	}
	u := unit{root: ls, children: []model.Model{local}}
	ls.Ports = append(ls.Ports, local.UUID)
	for _, p := range r.out[x.ID] {
		// The gateway announces its addresses, so that a new one is used at once.
		j := r.routerLink(p.Project, id, map[string]string{"nat-addresses": "router"})
		ls.Ports = append(ls.Ports, j.UUID)
		u.children = append(u.children, j)
	}
	for _, b := range r.t.Branches {
		if b.External == x.ID {
			j := r.link(BranchName(b.Project, b.External)+"-out", b.Project, map[string]string{"nat-addresses": "router"})
			ls.Ports = append(ls.Ports, j.UUID)
			u.children = append(u.children, j)
		}
	}
	r.switches = append(r.switches, u)
}
