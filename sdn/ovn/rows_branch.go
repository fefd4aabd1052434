package ovn

import (
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// A project's branches are separate routers, because a router has one routing
// table and external networks may have the same range. They are connected to
// the project's router by a switch, whose range is not allowed for projects'
// networks:
//
//	networks ── router ── transit ── branch ── external network
//	               └── external network of the router
//
// Replies that must leave through a branch, from the instances with its
// floating IPs and the backends of its load balancers, are routed to it by
// policies of the router.

// transit is the range between a router and its branches.
var transit = netip.MustParsePrefix("169.254.64.0/24")

// Priorities of policies, the highest first.
const (
	policyBalanced = 2000 // for a load balancer's port
	policyFloating = 1000
)

func transitName(p api.ProjectID) string { return "transit-" + string(p) }

// transitAddress returns the address of the router; branches have others.
func transitAddress() netip.Addr { return transit.Addr().Next() }

// slots returns the branches' addresses in the transit network: each is
// derived from a hash, so that an added or removed branch changes others only
// on a collision.
func slots(branches []sdn.Router) map[api.ExternalNetworkID]netip.Addr {
	const places = 250
	all, taken := map[api.ExternalNetworkID]netip.Addr{}, map[uint32]bool{}
	for _, b := range branches {
		at := crc32.ChecksumIEEE([]byte(b.External)) % places
		for taken[at] {
			at = (at + 1) % places
		}
		taken[at] = true
		raw := transit.Addr().As4()
		raw[3] = byte(at + 2)
		all[b.External] = netip.AddrFrom4(raw)
	}
	return all
}

// link returns a switch's port that is connected to a router's port.
func (r *rower) link(port string, of api.ProjectID, more map[string]string) *nb.LogicalSwitchPort {
	p := &nb.LogicalSwitchPort{UUID: r.id(nb.LogicalSwitchPortTable, "to-"+port), Name: "to-" + port, Type: "router",
		ExternalIDs: r.ids(string(of)), Addresses: []string{"router"}, Options: map[string]string{"router-port": port}}
	for k, v := range more {
		p.Options[k] = v
	}
	return p
}

// inside returns a router's port in the transit network.
func (r *rower) inside(port string, of api.ProjectID, at netip.Addr) *nb.LogicalRouterPort {
	return &nb.LogicalRouterPort{UUID: r.id(nb.LogicalRouterPortTable, port), Name: port, MAC: MAC("transit", port),
		Networks: []string{netip.PrefixFrom(at, transit.Bits()).String()}, ExternalIDs: r.ids(string(of))}
}

// toBranches adds the policies that route to branches, and returns the
// router's port in the transit network and these rows.
func (r *rower) toBranches(lr *nb.LogicalRouter, p sdn.Router) (children []model.Model) {
	branches := r.branchRouters[p.Project]
	if len(branches) == 0 {
		return nil
	}
	port := r.inside(RouterPortName(p.Project, "transit"), p.Project, transitAddress())
	lr.Ports = append(lr.Ports, port.UUID)
	children = append(children, port)
	at, here := slots(branches), r.ranges(p.Project)
	policy := func(priority int, match string, to api.ExternalNetworkID) {
		if len(here) > 0 {
			match += " && !(ip4.dst == {" + strings.Join(here, ", ") + "})"
		}
		row := &nb.LogicalRouterPolicy{UUID: r.id(nb.LogicalRouterPolicyTable, string(p.Project)+"\x00"+fmt.Sprint(priority)+"\x00"+match),
			Priority: priority, Match: match, Action: nb.LogicalRouterPolicyActionAllow, ExternalIDs: r.ids(string(p.Project))}
		if next, ok := at[to]; ok {
			row.Action, row.Nexthops = nb.LogicalRouterPolicyActionReroute, []string{next.String()}
		}
		for _, id := range lr.Policies {
			if id == row.UUID {
				return // two load balancers with one backend: the first has the policy
			}
		}
		lr.Policies = append(lr.Policies, row.UUID)
		children = append(children, row)
	}
	for _, l := range r.lbs[p.Project] {
		if !l.Floating.IsValid() {
			continue
		}
		for _, b := range l.Backends {
			policy(policyBalanced, fmt.Sprintf("ip4.src == %s && %s.src == %d", b.Address, l.Protocol, b.Target), l.External)
		}
	}
	for _, f := range r.floats[p.Project] {
		if _, away := at[f.External]; away && f.Target.Is4() {
			policy(policyFloating, "ip4.src == "+f.Target.String(), f.External)
		}
	}
	return children
}

// ranges returns the IPv4 ranges of the networks on the project's router.
func (r *rower) ranges(p api.ProjectID) (all []string) {
	for _, n := range r.joined[p] {
		if n.CIDR4.IsValid() {
			all = append(all, n.CIDR4.String())
		}
	}
	return all
}

// branches adds the branches of a project, and the switch that connects them
// to its router.
func (r *rower) branches(p sdn.Router) {
	branches := r.branchRouters[p.Project]
	if len(branches) == 0 {
		return
	}
	name := transitName(p.Project)
	ls := &nb.LogicalSwitch{UUID: r.id(nb.LogicalSwitchTable, name), Name: name, ExternalIDs: r.ids(string(p.Project))}
	u := unit{root: ls}
	join := func(port string) {
		j := r.link(port, p.Project, nil)
		ls.Ports = append(ls.Ports, j.UUID)
		u.children = append(u.children, j)
	}
	join(RouterPortName(p.Project, "transit"))
	at := slots(branches)
	for _, b := range branches {
		join(BranchName(b.Project, b.External) + "-in")
		r.branch(b, at[b.External])
	}
	r.switches = append(r.switches, u)
}

func (r *rower) branch(b sdn.Router, at netip.Addr) {
	name := BranchName(b.Project, b.External)
	lr := &nb.LogicalRouter{UUID: r.id(nb.LogicalRouterTable, name), Name: name, ExternalIDs: r.ids(string(b.Project)), Options: routerOptions()}
	in := r.inside(name+"-in", b.Project, at)
	lr.Ports = append(lr.Ports, in.UUID)
	u := unit{root: lr, children: []model.Model{in}}
	u.children = append(u.children, r.externalPort(lr, b, r.ext[b.External], name+"-out")...)
	for _, cidr := range r.ranges(b.Project) {
		route := &nb.LogicalRouterStaticRoute{UUID: r.id(nb.LogicalRouterStaticRouteTable, name+"/"+cidr), IPPrefix: cidr,
			Nexthop: transitAddress().String(), OutputPort: &in.Name, ExternalIDs: r.ids(string(b.Project))}
		lr.StaticRoutes = append(lr.StaticRoutes, route.UUID)
		u.children = append(u.children, route)
	}
	for _, l := range r.lbs[b.Project] {
		if l.Floating.IsValid() && l.External == b.External {
			lr.LoadBalancer = append(lr.LoadBalancer, r.id(nb.LoadBalancerTable, outerBalancer(l)))
		}
	}
	r.routers = append(r.routers, u)
}
