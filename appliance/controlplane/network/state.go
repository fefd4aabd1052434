package network

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

var (
	ovnKind     = objects.As[OVN](api.KindOVN)
	chassisKind = objects.As[Chassis](api.KindChassis)
	// securityKind has whether tunnels are to be encrypted.
	securityKind = objects.As[api.StoredSecuritySettings](api.KindSecuritySettings)
)

// Kinds lists the kinds that the network is computed from: the cache must have them.
var Kinds = []objects.Kind{
	objects.Of[api.Node](), ovnKind, chassisKind, securityKind,
	objects.Of[api.Project](), objects.Of[api.Network](), objects.Of[api.SecurityGroup](), objects.Of[api.ExternalNetwork](), objects.Of[api.Router](),
	objects.Of[api.FloatingIP](), objects.Of[api.LoadBalancer](), objects.Of[api.Instance](), objects.Of[api.Migration](), objects.Of[api.Flavor](),
}

// state is the relevant objects, by ID. It is read-only.
type state struct {
	nodes      map[string]api.Node
	ovn        map[string]OVN
	chassis    map[string]Chassis
	projects   map[string]api.Project
	networks   map[string]api.Network
	groups     map[string]api.SecurityGroup
	external   map[string]api.ExternalNetwork
	routers    map[string]api.Router
	floating   map[string]api.FloatingIP
	balancers  map[string]api.LoadBalancer
	instances  map[string]api.Instance
	migrations map[string]api.Migration
	flavors    map[string]api.Flavor
	security   api.StoredSecuritySettings
}

func stateOf(s *objects.Set) *state {
	return &state{
		nodes:      objects.Map[api.Node](s),
		ovn:        objects.Map[OVN](s),
		chassis:    objects.Map[Chassis](s),
		projects:   objects.Map[api.Project](s),
		networks:   objects.Map[api.Network](s),
		groups:     objects.Map[api.SecurityGroup](s),
		external:   objects.Map[api.ExternalNetwork](s),
		routers:    objects.Map[api.Router](s),
		floating:   objects.Map[api.FloatingIP](s),
		balancers:  objects.Map[api.LoadBalancer](s),
		instances:  objects.Map[api.Instance](s),
		migrations: objects.Map[api.Migration](s),
		flavors:    objects.Map[api.Flavor](s),
		security:   objects.Map[api.StoredSecuritySettings](s)[api.SecuritySettingsID],
	}
}

// NodeKinds are the kinds that a node's daemons depend on, HostKinds those of Hosts.
var (
	NodeKinds = []objects.Kind{objects.Of[api.Node](), ovnKind, chassisKind}
	HostKinds = []objects.Kind{objects.Of[api.Node](), chassisKind}
)

// BootstrapOf returns the decisions about OVN's databases.
func BootstrapOf(s *objects.Set) deploy.Bootstrap { return objects.Map[OVN](s)[ovnID].Spec.Bootstrap }

// Members returns the nodes that have databases: those that vote, or alone if there are
// none.
func Members(s *objects.Set, alone deploy.Member) []deploy.Member {
	return members(objects.Map[api.Node](s), alone)
}

func (s *state) bootstrap() deploy.Bootstrap { return s.decisions().Bootstrap }

func (s *state) decisions() Decisions { return s.ovn[ovnID].Spec }

func (s *state) members(alone deploy.Member) []deploy.Member { return members(s.nodes, alone) }

func members(nodes map[string]api.Node, alone deploy.Member) []deploy.Member {
	var all []deploy.Member
	for id, n := range nodes {
		if a, ok := memberAddress(n); ok && n.Assignment.Voter && n.Meta.DeletedAt == nil {
			all = append(all, deploy.Member{Node: id, Address: a})
		}
	}
	if len(all) == 0 {
		return []deploy.Member{alone}
	}
	slices.SortFunc(all, func(a, b deploy.Member) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// reports returns the reports of the nodes that are alive: with that of a dead node,
// databases could look healthy that do not exist any more.
func (s *state) reports() map[string]deploy.Report {
	all := map[string]deploy.Report{}
	for id, c := range s.chassis {
		n, there := s.nodes[id]
		if there && n.Assignment.State != api.NodeLost && n.Assignment.State != api.NodeSuspect {
			all[id] = c.Status.Report
		}
	}
	return all
}

// objects returns the objects that the Topology is computed from.
func (s *state) objects(cluster string) sdn.Objects {
	physical := map[api.NodeID][]string{}
	for id, c := range s.chassis {
		physical[api.NodeID(id)] = c.Status.Physical
	}
	return sdn.Objects{
		Cluster: cluster, Projects: objects.Sorted(s.projects), Networks: objects.Sorted(s.networks), SecurityGroups: objects.Sorted(s.groups),
		ExternalNetworks: objects.Sorted(s.external), Routers: objects.Sorted(s.routers), FloatingIPs: objects.Sorted(s.floating),
		LoadBalancers: objects.Sorted(s.balancers), Instances: objects.Sorted(s.instances), Migrations: objects.Sorted(s.migrations), Nodes: objects.Sorted(s.nodes), Physical: physical,
		Forbidden: s.forbidden(),
	}
}
