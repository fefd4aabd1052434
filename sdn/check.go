package sdn

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Limits of a Topology.
const (
	MaxNetworks      = 16384
	MaxPorts         = 131072
	MaxRules         = 256 // per group
	MaxGroupsOfAPort = 16
	MaxBackends      = 128 // per load balancer
	MaxBranches      = 16  // per project
	MinMTU           = 1280
	MaxMTU           = 9000
)

// Check returns the consistent part of t, and a Problem for each object that
// was left out. So an object that conflicts with another does not affect the
// network of all others.
func (t Topology) Check() (Topology, []Problem) {
	c := checker{in: t, networks: map[api.NetworkID]Network{}, routers: map[api.ProjectID]Router{}, groups: map[api.SecurityGroupID]api.ProjectID{},
		ports: map[PortID]Port{}, external: map[api.ExternalNetworkID]ExternalNetwork{}, taken: map[address]string{}, vips: map[vip]bool{}, branches: map[api.ProjectID][]api.ExternalNetworkID{}}
	c.out = Topology{Cluster: t.Cluster, Forbidden: t.Forbidden}
	c.nest()
	keep(&c, &c.out.External, t.External, api.KindExternalNetwork, func(x ExternalNetwork) string { return string(x.ID) }, c.checkExternal)
	keep(&c, &c.out.Networks, t.Networks, api.KindNetwork, func(x Network) string { return string(x.ID) }, c.checkNetwork)
	keep(&c, &c.out.Routers, t.Routers, api.KindRouter, func(x Router) string { return string(x.Project) }, c.checkRouter)
	keep(&c, &c.out.Branches, t.Branches, api.KindRouter, func(x Router) string { return string(x.Project) }, c.checkBranch)
	for _, g := range t.SecurityGroups {
		c.groups[g.ID] = g.Project
	}
	for _, g := range t.SecurityGroups {
		if err := c.checkGroup(g); err != nil {
			c.problems = append(c.problems, Problem{api.KindSecurityGroup, string(g.ID), err})
			g.Rules = nil // other objects refer to the group, so it stays, but allows nothing
		}
		c.out.SecurityGroups = append(c.out.SecurityGroups, g)
	}
	keep(&c, &c.out.Ports, t.Ports, api.KindInstance, func(x Port) string { i, _ := x.ID.Instance(); return string(i) }, c.checkPort)
	keep(&c, &c.out.FloatingIPs, t.FloatingIPs, api.KindFloatingIP, func(x FloatingIP) string { return string(x.ID) }, c.checkFloating)
	for _, l := range t.LoadBalancers {
		if err := c.checkBalancer(l); err != nil {
			c.problems = append(c.problems, Problem{api.KindLoadBalancer, string(l.ID), err})
			continue
		}
		if err := c.checkBalanced(l); err != nil {
			c.problems = append(c.problems, Problem{api.KindLoadBalancer, string(l.ID), err})
			l.Floating, l.External = netip.Addr{}, "" // it still serves the project's networks
		}
		c.out.LoadBalancers = append(c.out.LoadBalancers, l)
	}
	return c.out, c.problems
}

// keep appends the elements that pass check.
func keep[T any](c *checker, to *[]T, from []T, kind api.Kind, id func(T) string, check func(T) *api.Error) {
	for _, x := range from {
		if err := check(x); err != nil {
			c.problems = append(c.problems, Problem{kind, id(x), err})
			continue
		}
		*to = append(*to, x)
	}
}

type (
	// address is an address in a network; for an external one, network is its ID.
	address struct {
		network string
		ip      netip.Addr
	}
	vip struct {
		address  address
		protocol api.Protocol
		port     uint16
	}
)

type checker struct {
	in, out  Topology
	problems []Problem

	networks map[api.NetworkID]Network
	external map[api.ExternalNetworkID]ExternalNetwork
	routers  map[api.ProjectID]Router
	groups   map[api.SecurityGroupID]api.ProjectID
	ports    map[PortID]Port
	taken    map[address]string // by owner
	vips     map[vip]bool

	routed    map[api.ProjectID]*nest // ranges on the project's router
	bySegment map[segment]*nest       // ranges of external networks

	branches map[api.ProjectID][]api.ExternalNetworkID
}

// segment identifies a physical network and VLAN, on which external networks
// must not overlap.
type segment struct {
	physical string
	vlan     int
}

// nest collects the ranges that must not overlap.
func (c *checker) nest() {
	routed, onCable := map[api.ProjectID][]netip.Prefix{}, map[segment][]netip.Prefix{}
	for _, n := range c.in.Networks {
		if !n.Isolated {
			routed[n.Project] = append(routed[n.Project], n.CIDR4, n.CIDR6)
		}
	}
	for _, x := range c.in.External {
		at := segment{x.Physical, x.VLAN}
		onCable[at] = append(onCable[at], x.CIDR4, x.CIDR6)
	}
	c.routed, c.bySegment = map[api.ProjectID]*nest{}, map[segment]*nest{}
	for p, all := range routed {
		c.routed[p] = newNest(all)
	}
	for at, all := range onCable {
		c.bySegment[at] = newNest(all)
	}
}

func asError(err error) *api.Error {
	var e *api.Error
	if errors.As(err, &e) {
		return e
	}
	return api.Errorf(api.CodeInternal, "%v", err)
}

func invalid(format string, args ...any) *api.Error {
	return api.Errorf(api.CodeInvalid, format, args...)
}

// claim records the owner of the address, which must be free and in the range.
func (c *checker) claim(network string, cidr netip.Prefix, ip netip.Addr, who string) *api.Error {
	if !ip.IsValid() {
		return nil
	}
	a := address{network, ip}
	switch owner, taken := c.taken[a]; {
	case !cidr.IsValid() || !cidr.Contains(ip):
		return invalid("address %s is not in range %s of the network", ip, cidr)
	case taken && owner != who:
		return api.Errorf(api.CodeConflict, "address %s is already used by %s", ip, owner)
	}
	c.taken[a] = who
	return nil
}

func ranges(cidr4, cidr6 netip.Prefix) *api.Error {
	switch {
	case !cidr4.IsValid() && !cidr6.IsValid():
		return invalid("the network has no address range")
	case cidr4.IsValid() && (!cidr4.Addr().Is4() || cidr4 != cidr4.Masked() || cidr4.Bits() > 29 || cidr4.Bits() < 8):
		return invalid("range %s is not a valid IPv4 prefix, want /8 to /29", cidr4)
	case cidr6.IsValid() && (!cidr6.Addr().Is6() || cidr6 != cidr6.Masked() || cidr6.Bits() > 112 || cidr6.Bits() < 32):
		return invalid("range %s is not a valid IPv6 prefix, want /32 to /112", cidr6)
	}
	return nil
}

func (c *checker) checkExternal(x ExternalNetwork) *api.Error {
	if err := ranges(x.CIDR4, x.CIDR6); err != nil {
		return err
	}
	if x.VLAN < 0 || x.VLAN > 4094 {
		return invalid("VLAN %d is out of range, want 1 to 4094", x.VLAN)
	}
	outside := c.bySegment[segment{x.Physical, x.VLAN}]
	for _, p := range []netip.Prefix{x.CIDR4, x.CIDR6} {
		if o := outside.taken(p); o != "" {
			return api.Errorf(api.CodeConflict, "its range overlaps external network %s on the same physical network", o)
		}
	}
	if err := c.claim(string(x.ID), x.CIDR4, x.Gateway4, "its gateway"); err != nil {
		return err
	}
	if err := c.claim(string(x.ID), x.CIDR6, x.Gateway6, "its gateway"); err != nil {
		return err
	}
	outside.record(x.CIDR4, string(x.ID))
	outside.record(x.CIDR6, string(x.ID))
	c.external[x.ID] = x
	return nil
}

func (c *checker) checkNetwork(n Network) *api.Error {
	if len(c.networks) >= MaxNetworks {
		return api.Errorf(api.CodeNoCapacity, "%d networks already exist, the maximum", MaxNetworks)
	}
	if err := ranges(n.CIDR4, n.CIDR6); err != nil {
		return err
	}
	if n.MTU < MinMTU || n.MTU > MaxMTU {
		return invalid("MTU of %d bytes is out of range, want %d to %d", n.MTU, MinMTU, MaxMTU)
	}
	var routed *nest
	if !n.Isolated {
		routed = c.routed[n.Project]
	}
	for _, p := range []netip.Prefix{n.CIDR4, n.CIDR6} {
		if o := routed.taken(p); o != "" {
			return api.Errorf(api.CodeConflict, "its range overlaps the range of %s, which is on the same router", o).
				WithHint("choose another range, or isolate one of them")
		}
	}
	for _, g := range []struct {
		cidr netip.Prefix
		ip   netip.Addr
	}{{n.CIDR4, n.Gateway4}, {n.CIDR6, n.Gateway6}} {
		if g.cidr.IsValid() && !g.ip.IsValid() {
			return invalid("range %s has no gateway", g.cidr)
		}
		if err := c.claim(string(n.ID), g.cidr, g.ip, "the gateway"); err != nil {
			return err
		}
	}
	if n.CIDR4.IsValid() {
		c.taken[address{string(n.ID), HealthAddress(n.CIDR4)}] = "the health checks"
	}
	routed.record(n.CIDR4, string(n.ID))
	routed.record(n.CIDR6, string(n.ID))
	c.networks[n.ID] = n
	return nil
}

func (c *checker) checkRouter(r Router) *api.Error {
	if _, twice := c.routers[r.Project]; twice {
		return api.Errorf(api.CodeConflict, "project %s has two routers", r.Project)
	}
	if r.External != "" {
		x, ok := c.external[r.External]
		if !ok {
			return api.Errorf(api.CodeNotFound, "external network %s does not exist", r.External)
		}
		if err := c.claim(string(x.ID), x.CIDR4, r.Address4, "the router of "+string(r.Project)); err != nil {
			return err
		}
		if err := c.claim(string(x.ID), x.CIDR6, r.Address6, "the router of "+string(r.Project)); err != nil {
			return err
		}
	}
	c.routers[r.Project] = r
	return nil
}

// checkBranch checks a router of a project to another external network than
// its main router's.
func (c *checker) checkBranch(r Router) *api.Error {
	main, ok := c.routers[r.Project]
	x, known := c.external[r.External]
	switch {
	case !ok:
		return api.Errorf(api.CodeNotFound, "project %s has no router to add an uplink to", r.Project)
	case !known:
		return api.Errorf(api.CodeNotFound, "external network %s does not exist", r.External)
	case main.External == r.External || slices.Contains(c.branches[r.Project], r.External):
		return api.Errorf(api.CodeConflict, "project %s has more than one uplink to external network %s", r.Project, r.External)
	case !r.Address4.IsValid() || r.Address6.IsValid():
		return invalid("the address of an uplink must be an IPv4 address")
	case len(c.branches[r.Project]) >= MaxBranches:
		return api.Errorf(api.CodeNoCapacity, "project %s already has %d uplinks, the maximum", r.Project, MaxBranches)
	}
	if err := c.claim(string(x.ID), x.CIDR4, r.Address4, "the router of "+string(r.Project)); err != nil {
		return err
	}
	c.branches[r.Project] = append(c.branches[r.Project], r.External)
	return nil
}

func (c *checker) checkGroup(g SecurityGroup) *api.Error {
	if len(g.Rules) > MaxRules {
		return invalid("security group has %d rules, want at most %d", len(g.Rules), MaxRules)
	}
	for _, r := range g.Rules {
		if project, known := c.groups[r.Group]; r.Group != "" && (!known || project != g.Project) {
			return api.Errorf(api.CodeNotFound, "security group %s does not exist", r.Group)
		}
		if r.FirstPort > r.LastPort {
			return invalid("invalid port range %d to %d", r.FirstPort, r.LastPort)
		}
		if r.FirstPort != 0 && r.Protocol != api.ProtocolTCP && r.Protocol != api.ProtocolUDP {
			return invalid("a rule for protocol %s cannot have ports", r.Protocol)
		}
		if r.Peer.IsValid() && (r.Protocol == api.ProtocolICMP && r.Peer.Addr().Is6() || r.Protocol == api.ProtocolICMP6 && r.Peer.Addr().Is4()) {
			return invalid("a rule for protocol %s cannot have peer %s", r.Protocol, r.Peer)
		}
		if r.Direction != api.Ingress && r.Direction != api.Egress ||
			!slices.Contains([]api.Protocol{api.ProtocolTCP, api.ProtocolUDP, api.ProtocolICMP, api.ProtocolICMP6, api.ProtocolAny}, r.Protocol) {
			return invalid("invalid rule: direction %s, protocol %s", r.Direction, r.Protocol)
		}
	}
	return nil
}

func (c *checker) checkPort(p Port) *api.Error {
	n, ok := c.networks[p.Network]
	if !ok {
		return api.Errorf(api.CodeNotFound, "network %s does not exist", p.Network)
	}
	if len(c.ports) >= MaxPorts {
		return api.Errorf(api.CodeNoCapacity, "%d ports already exist, the maximum", MaxPorts)
	}
	if _, twice := c.ports[p.ID]; twice {
		return api.Errorf(api.CodeConflict, "port %s is defined twice", p.ID)
	}
	if _, ok := p.ID.Instance(); !ok {
		return invalid("%q is not a valid port ID of an instance", p.ID)
	}
	mac, err := net.ParseMAC(p.MAC)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 || mac[0] == RouterMACs || mac.String() != p.MAC {
		return invalid("%q is not a unicast MAC address", p.MAC)
	}
	if !p.Address4.IsValid() && !p.Address6.IsValid() {
		return invalid("port %s has no address", p.ID)
	}
	if len(p.SecurityGroups) > MaxGroupsOfAPort {
		return invalid("port has %d security groups, want at most %d", len(p.SecurityGroups), MaxGroupsOfAPort)
	}
	for _, g := range p.SecurityGroups {
		if project, known := c.groups[g]; !known || project != n.Project {
			return api.Errorf(api.CodeNotFound, "security group %s does not exist", g)
		}
	}
	if err := c.claim(string(n.ID), n.CIDR4, p.Address4, string(p.ID)); err != nil {
		return err
	}
	if err := c.claim(string(n.ID), n.CIDR6, p.Address6, string(p.ID)); err != nil {
		return err
	}
	c.ports[p.ID] = p
	return nil
}

// outside checks an address of the external network that the project's router
// is to use there. The range alone does not identify the network: ranges of
// external networks may overlap.
func (c *checker) outside(project api.ProjectID, external api.ExternalNetworkID, ip netip.Addr, who string) *api.Error {
	r := c.routers[project]
	x, ok := c.external[external]
	switch {
	case slices.Contains(c.branches[project], external):
	case r.External == "":
		return api.Errorf(api.CodeState, "the project's router has no external connectivity yet")
	case !ok:
		return api.Errorf(api.CodeNotFound, "address %s: external network %q does not exist", ip, external)
	case r.External != external:
		return api.Errorf(api.CodeState, "address %s is in external network %s, where project %s has no router yet", ip, external, project).
			WithHint("the router is created automatically, unless the external network has no free address")
	}
	cidr := x.CIDR4
	if ip.Is6() {
		cidr = x.CIDR6
	}
	return c.claim(string(x.ID), cidr, ip, who)
}

func (c *checker) checkFloating(f FloatingIP) *api.Error {
	p, ok := c.ports[f.Port]
	n := c.networks[p.Network]
	switch {
	case !ok || n.Project != f.Project:
		return api.Errorf(api.CodeNotFound, "port %s does not exist", f.Port)
	case n.Isolated:
		return api.Errorf(api.CodeState, "network %s is isolated and cannot have floating IPs", n.ID)
	case !f.Target.IsValid() || f.Target != p.Address4 && f.Target != p.Address6 || f.Target.Is4() != f.Address.Is4():
		return invalid("port %s has no address for %s", f.Port, f.Address)
	}
	return c.outside(f.Project, f.External, f.Address, "floating IP "+string(f.ID))
}

func (c *checker) checkBalancer(l LoadBalancer) *api.Error {
	n, ok := c.networks[l.Network]
	switch {
	case !ok || n.Project != l.Project:
		return api.Errorf(api.CodeNotFound, "network %s does not exist", l.Network)
	case n.Isolated:
		return api.Errorf(api.CodeState, "network %s is isolated and cannot have load balancers", n.ID)
	case len(l.Backends) > MaxBackends:
		return invalid("load balancer has %d backends, want at most %d", len(l.Backends), MaxBackends)
	case l.Protocol != api.ProtocolTCP && l.Protocol != api.ProtocolUDP:
		return invalid("load balancers do not support protocol %s", l.Protocol)
	case !l.Address.Is4() || l.Port == 0:
		return invalid("a load balancer needs an IPv4 address and a port")
	}
	for _, k := range l.Backends {
		if p, ok := c.ports[k.Port]; !ok || p.Network != l.Network || p.Address4 != k.Address || k.Target == 0 {
			return api.Errorf(api.CodeNotFound, "backend port %s with address %s does not exist", k.Port, k.Address)
		}
	}
	return c.claim(string(n.ID), n.CIDR4, l.Address, "load balancer "+string(l.ID))
}

// checkBalanced checks the external address of a load balancer.
func (c *checker) checkBalanced(l LoadBalancer) *api.Error {
	if !l.Floating.IsValid() {
		return nil
	}
	// Several load balancers may share an external address, on different ports.
	v := vip{address{string(l.External), l.Floating}, l.Protocol, l.Port}
	if c.vips[v] {
		return api.Errorf(api.CodeConflict, "address %s port %d is already used by another load balancer", l.Floating, l.Port)
	}
	if err := c.outside(l.Project, l.External, l.Floating, "load balancers of "+string(l.Project)); err != nil {
		return err
	}
	c.vips[v] = true
	return nil
}
