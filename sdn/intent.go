package sdn

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Objects are the objects that a Topology is computed from. Only their fields
// about the network are used.
type Objects struct {
	Cluster          string
	Projects         []api.Project
	Networks         []api.Network
	SecurityGroups   []api.SecurityGroup
	ExternalNetworks []api.ExternalNetwork
	Routers          []api.Router
	FloatingIPs      []api.FloatingIP
	LoadBalancers    []api.LoadBalancer
	Instances        []api.Instance
	Migrations       []api.Migration
	Nodes            []api.Node
	// Physical networks that a node has an interface for, by node.
	Physical map[api.NodeID][]string
	// Forbidden are the addresses that nodes report of themselves, in addition to
	// those by which nodes know each other.
	Forbidden []netip.Prefix
}

// Problem is an error of an object: it is left out of the Topology, the others
// are not.
type Problem struct {
	Kind  api.Kind
	ID    string
	Error *api.Error
}

// Intent returns the Topology that the objects describe, sorted, and what was
// wrong with those that are not in it. An object that waits for the planner is
// not in it either, and is not a problem.
func Intent(o Objects) (Topology, []Problem) {
	b := builder{objects: o, t: Topology{Cluster: o.Cluster}}
	b.index()
	b.external()
	b.networks()
	b.routers()
	b.groups()
	b.ports()
	b.floating()
	b.balancers()
	b.nodes()
	b.t.sort()
	t, more := b.t.Check()
	return t, append(b.problems, more...)
}

type builder struct {
	objects  Objects
	t        Topology
	problems []Problem

	domains  map[api.ProjectID]string
	network  map[api.NetworkID]*Network
	defaults map[api.ProjectID]api.SecurityGroupID
	floats   map[api.FloatingIPID]api.FloatingIP
	balanced map[api.FloatingIPID]api.LoadBalancerID // load balancers by external address
	ofHost   map[api.InstanceID][]Port
	moves    map[api.InstanceID]api.NodeID // target
}

func (b *builder) index() {
	b.domains, b.network = map[api.ProjectID]string{}, map[api.NetworkID]*Network{}
	b.defaults, b.floats = map[api.ProjectID]api.SecurityGroupID{}, map[api.FloatingIPID]api.FloatingIP{}
	b.balanced = map[api.FloatingIPID]api.LoadBalancerID{}
	b.ofHost, b.moves = map[api.InstanceID][]Port{}, map[api.InstanceID]api.NodeID{}
	for _, p := range b.objects.Projects {
		b.domains[api.ProjectID(p.Meta.ID)] = Domain(p)
	}
	for _, g := range b.objects.SecurityGroups {
		if g.Meta.Name == "default" && g.Meta.DeletedAt == nil {
			b.defaults[api.ProjectID(g.Meta.Project)] = api.SecurityGroupID(g.Meta.ID)
		}
	}
	for _, f := range b.objects.FloatingIPs {
		b.floats[api.FloatingIPID(f.Meta.ID)] = f
	}
	for _, l := range b.objects.LoadBalancers {
		if l.Meta.DeletedAt == nil && l.Spec.FloatingIP != "" {
			id := api.LoadBalancerID(l.Meta.ID)
			// If several share it, the result does not depend on the order of the
			// objects.
			if other, ok := b.balanced[l.Spec.FloatingIP]; !ok || id < other {
				b.balanced[l.Spec.FloatingIP] = id
			}
		}
	}
	for _, m := range b.objects.Migrations {
		if m.Assignment.Target != "" && m.Spec.Instance != "" && !m.Status.Phase.Ended() {
			b.moves[m.Spec.Instance] = m.Assignment.Target
		}
	}
}

func (b *builder) problem(kind api.Kind, id string, err error) {
	if err != nil {
		b.problems = append(b.problems, Problem{kind, id, asError(err)})
	}
}

func (b *builder) external() {
	for _, x := range b.objects.ExternalNetworks {
		if x.Meta.DeletedAt != nil {
			continue
		}
		var p parser
		n := ExternalNetwork{
			ID: api.ExternalNetworkID(x.Meta.ID), Physical: cmp.Or(x.Spec.PhysicalNetwork, "external"), VLAN: int(x.Spec.Vlan),
			CIDR4: p.prefix("spec.cidr4", x.Spec.Cidr4), CIDR6: p.prefix("spec.cidr6", x.Spec.Cidr6),
			Gateway4: p.addr("spec.gateway4", x.Spec.Gateway4), Gateway6: p.addr("spec.gateway6", x.Spec.Gateway6),
		}
		if p.err != nil {
			b.problem(api.KindExternalNetwork, x.Meta.ID, p.err)
			continue
		}
		n.Gateways = b.gateways(n.Physical)
		b.t.External = append(b.t.External, n)
	}
}

func (b *builder) networks() {
	for _, x := range b.objects.Networks {
		if x.Meta.DeletedAt != nil || x.Assignment.Gateway4 == "" && x.Assignment.Gateway6 == "" {
			continue
		}
		var p parser
		project := api.ProjectID(x.Meta.Project)
		n := Network{
			ID: api.NetworkID(x.Meta.ID), Project: project,
			CIDR4: p.prefix("spec.cidr4", x.Spec.Cidr4), CIDR6: p.prefix("spec.cidr6", x.Spec.Cidr6),
			Gateway4: p.addr("assignment.gateway4", x.Assignment.Gateway4), Gateway6: p.addr("assignment.gateway6", x.Assignment.Gateway6),
			Domain: b.domains[project], Isolated: x.Spec.Isolated, MTU: cmp.Or(int(x.Spec.Mtu), DefaultMTU),
		}
		for _, s := range x.Spec.DNSServers {
			if a := p.addr("spec.dnsServers", s); !Public(a) || !n.CIDR4.IsValid() {
				n.DNSServers = append(n.DNSServers, a)
			}
		}
		if p.err != nil {
			b.problem(api.KindNetwork, x.Meta.ID, p.err)
			continue
		}
		b.t.Networks = append(b.t.Networks, n)
	}
	for i := range b.t.Networks {
		b.network[b.t.Networks[i].ID] = &b.t.Networks[i]
	}
}

// routers adds one router for each project that has a network with one, with
// or without an external network, and its branches.
func (b *builder) routers() {
	byProject := map[api.ProjectID]Router{}
	for _, n := range b.t.Networks {
		if !n.Isolated {
			byProject[n.Project] = Router{Project: n.Project}
		}
	}
	for _, x := range b.objects.Routers {
		project := api.ProjectID(x.Meta.Project)
		if _, needed := byProject[project]; !needed || x.Meta.DeletedAt != nil || x.Assignment.Address4 == "" && x.Assignment.Address6 == "" {
			continue
		}
		var p parser
		r := Router{Project: project, External: x.Spec.ExternalNetwork,
			Address4: p.addr("assignment.address4", x.Assignment.Address4), Address6: p.addr("assignment.address6", x.Assignment.Address6)}
		if p.err != nil {
			b.problem(api.KindRouter, x.Meta.ID, p.err)
			continue
		}
		if x.Meta.Name != api.MainRouter {
			b.t.Branches = append(b.t.Branches, r)
			continue
		}
		byProject[project] = r
	}
	for _, r := range byProject {
		b.t.Routers = append(b.t.Routers, r)
	}
}

// gateways returns the nodes that are connected to a physical network.
func (b *builder) gateways(physical string) (all []api.NodeID) {
	for _, n := range b.objects.Nodes {
		id := api.NodeID(n.Meta.ID)
		if n.Status.Chassis && n.Meta.DeletedAt == nil && n.Assignment.State != api.NodeLost && slices.Contains(b.objects.Physical[id], physical) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

func (b *builder) nodes() {
	hosts, _ := Hosts(b.objects.Nodes)
	b.t.Forbidden = append(slices.Clone(b.objects.Forbidden), hosts...)
}

// parser keeps the first error.
type parser struct{ err error }

func (p *parser) fail(field, text, what string) {
	if p.err == nil {
		p.err = api.Errorf(api.CodeInvalid, "%q is not a valid %s", text, what).At(field)
	}
}

func (p *parser) addr(field, s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		p.fail(field, s, "address")
		return netip.Addr{}
	}
	return a
}

func (p *parser) prefix(field, s string) netip.Prefix {
	if s == "" {
		return netip.Prefix{}
	}
	x, err := netip.ParsePrefix(s)
	if err != nil || x.Addr().Is4In6() {
		p.fail(field, s, "address range")
		return netip.Prefix{}
	}
	return x.Masked()
}
