package ovn

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// gatewaysOfARouter is the number of gateways: the active one and the standby
// ones.
const gatewaysOfARouter = 3

func (r *rower) router(p sdn.Router) {
	lr := &nb.LogicalRouter{
		UUID: r.id(nb.LogicalRouterTable, string(p.Project)), Name: RouterName(p.Project), ExternalIDs: r.ids(string(p.Project)),
		Options: routerOptions(),
	}
	u := unit{root: lr}
	for _, n := range r.joined[p.Project] {
		lrp := r.gateway(n)
		lr.Ports = append(lr.Ports, lrp.UUID)
		u.children = append(u.children, lrp)
	}
	if x, ok := r.ext[p.External]; ok {
		u.children = append(u.children, r.externalPort(lr, p, x, RouterPortName(p.Project, string(x.ID)))...)
	}
	u.children = append(u.children, r.toBranches(lr, p)...)
	for _, l := range r.lbs[p.Project] {
		lr.LoadBalancer = append(lr.LoadBalancer, r.id(nb.LoadBalancerTable, string(l.ID)))
	}
	r.routers = append(r.routers, u)
}

func routerOptions() map[string]string {
	return map[string]string{
		// A router learns only addresses that answer its requests, and not every
		// sender of a request: otherwise a thousand routers on one external network
		// would all learn each other.
		"dynamic_neigh_routers": "true", "always_learn_from_arp_request": "false",
		"mac_binding_age_threshold": "300", // seconds
		"ct-zone-limit":             strconv.Itoa(connectionsOfARouter),
	}
}

// gateway returns the router's port in a network.
func (r *rower) gateway(n sdn.Network) *nb.LogicalRouterPort {
	name := RouterPortName(n.Project, string(n.ID))
	p := &nb.LogicalRouterPort{UUID: r.id(nb.LogicalRouterPortTable, name), Name: name, MAC: gatewayMAC(n), ExternalIDs: r.ids(string(n.ID))}
	if n.CIDR4.IsValid() {
		p.Networks = append(p.Networks, netip.PrefixFrom(n.Gateway4, n.CIDR4.Bits()).String())
	}
	if n.CIDR6.IsValid() {
		p.Networks = append(p.Networks, netip.PrefixFrom(n.Gateway6, n.CIDR6.Bits()).String())
		p.Ipv6RaConfigs = map[string]string{"address_mode": "dhcpv6_stateful", "send_periodic": "true", "mtu": strconv.Itoa(n.MTU)}
	}
	return p
}

// externalPort adds the router's external port, with its addresses, routes and
// NAT.
func (r *rower) externalPort(lr *nb.LogicalRouter, p sdn.Router, x sdn.ExternalNetwork, name string) (children []model.Model) {
	out := &nb.LogicalRouterPort{
		UUID: r.id(nb.LogicalRouterPortTable, name), Name: name, MAC: outsideMAC(p.Project, x.ID),
		ExternalIDs: r.ids(string(x.ID)), HaChassisGroup: r.gatewayGroup(p.Project, x.Gateways),
	}
	children = append(children, out)
	lr.Ports = append(lr.Ports, out.UUID)
	for _, f := range []struct {
		own, gateway netip.Addr
		cidr         netip.Prefix
		everywhere   string
		of           func(sdn.Network) netip.Prefix
	}{
		{p.Address4, x.Gateway4, x.CIDR4, "0.0.0.0/0", func(n sdn.Network) netip.Prefix { return n.CIDR4 }},
		{p.Address6, x.Gateway6, x.CIDR6, "::/0", func(n sdn.Network) netip.Prefix { return n.CIDR6 }},
	} {
		if !f.own.IsValid() {
			continue
		}
		out.Networks = append(out.Networks, netip.PrefixFrom(f.own, f.cidr.Bits()).String())
		if f.gateway.IsValid() {
			route := &nb.LogicalRouterStaticRoute{UUID: r.id(nb.LogicalRouterStaticRouteTable, name+"/"+f.everywhere), IPPrefix: f.everywhere,
				Nexthop: f.gateway.String(), OutputPort: &out.Name, ExternalIDs: r.ids(string(x.ID))}
			lr.StaticRoutes = append(lr.StaticRoutes, route.UUID)
			children = append(children, route)
		}
		for _, n := range r.joined[p.Project] {
			if inside := f.of(n); inside.IsValid() {
				nat := &nb.NAT{UUID: r.id(nb.NATTable, name+"/"+string(n.ID)+"/"+f.everywhere), Type: nb.NATTypeSNAT,
					ExternalIP: f.own.String(), LogicalIP: inside.String(), ExternalIDs: r.ids(string(n.ID))}
				lr.Nat = append(lr.Nat, nat.UUID)
				children = append(children, nat)
			}
		}
	}
	for _, f := range r.floats[p.Project] {
		if f.External != x.ID {
			continue
		}
		nat := &nb.NAT{UUID: r.id(nb.NATTable, string(f.ID)), Type: nb.NATTypeDNATAndSNAT,
			ExternalIP: f.Address.String(), LogicalIP: f.Target.String(), ExternalIDs: r.ids(string(f.ID))}
		lr.Nat = append(lr.Nat, nat.UUID)
		children = append(children, nat)
	}
	return children
}

// gatewayGroup returns the gateway group of a project: the nodes ordered by a
// hash of both, so that projects are distributed over the nodes, and adding or
// removing a node moves as few projects as possible (rendezvous hashing).
// Groups with the same order share one row.
func (r *rower) gatewayGroup(project api.ProjectID, gateways []api.NodeID) *string {
	if len(gateways) == 0 {
		return nil
	}
	order := slices.Clone(gateways)
	slices.SortFunc(order, func(a, b api.NodeID) int {
		return cmp.Compare(MAC("gateway", string(project), string(a)), MAC("gateway", string(project), string(b)))
	})
	order = order[:min(len(order), gatewaysOfARouter)]
	names := make([]string, len(order))
	for i, n := range order {
		names[i] = string(n)
	}
	name := "gateways-" + strings.Join(names, "-")
	g := &nb.HAChassisGroup{UUID: r.id(nb.HAChassisGroupTable, name), Name: name, ExternalIDs: r.ids("")}
	if !r.made[name] {
		r.made[name] = true
		u := unit{root: g}
		for i, n := range names {
			c := &nb.HAChassis{UUID: r.id(nb.HAChassisTable, name+"/"+n), ChassisName: n, Priority: 100 - i, ExternalIDs: r.ids(n)}
			g.HaChassis = append(g.HaChassis, c.UUID)
			u.children = append(u.children, c)
		}
		r.gateways = append(r.gateways, u)
	}
	return &g.UUID
}
