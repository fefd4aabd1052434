package network

import (
	"cmp"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// NodeKinds are what every node follows, LeaderKinds what the leader does.
var (
	NodeKinds   = []api.Kind{api.KindNode, api.KindOVN}
	LeaderKinds = []api.Kind{
		api.KindNode, api.KindOVN, api.KindChassis,
		api.KindProject, api.KindNetwork, api.KindSecurityGroup, api.KindExternalNetwork, api.KindRouter,
		api.KindFloatingIP, api.KindLoadBalancer, api.KindInstance, api.KindMigration,
	}
)

// state is the objects that matter here, by id.
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
}

func newState() *state {
	return &state{
		nodes: map[string]api.Node{}, ovn: map[string]OVN{}, chassis: map[string]Chassis{},
		projects: map[string]api.Project{}, networks: map[string]api.Network{}, groups: map[string]api.SecurityGroup{},
		external: map[string]api.ExternalNetwork{}, routers: map[string]api.Router{}, floating: map[string]api.FloatingIP{},
		balancers: map[string]api.LoadBalancer{}, instances: map[string]api.Instance{}, migrations: map[string]api.Migration{},
		flavors: map[string]api.Flavor{},
	}
}

// Apply implements watchcache.Picture.
func (s *state) Apply(e api.Event) (bool, error) { return true, s.apply(e) }

func (s *state) apply(e api.Event) error {
	switch e.Object.Kind {
	case api.KindNode:
		return watchcache.Apply(s.nodes, e)
	case api.KindOVN:
		return watchcache.Apply(s.ovn, e)
	case api.KindChassis:
		return watchcache.Apply(s.chassis, e)
	case api.KindProject:
		return watchcache.Apply(s.projects, e)
	case api.KindNetwork:
		return watchcache.Apply(s.networks, e)
	case api.KindSecurityGroup:
		return watchcache.Apply(s.groups, e)
	case api.KindExternalNetwork:
		return watchcache.Apply(s.external, e)
	case api.KindRouter:
		return watchcache.Apply(s.routers, e)
	case api.KindFloatingIP:
		return watchcache.Apply(s.floating, e)
	case api.KindLoadBalancer:
		return watchcache.Apply(s.balancers, e)
	case api.KindInstance:
		return watchcache.Apply(s.instances, e)
	case api.KindMigration:
		return watchcache.Apply(s.migrations, e)
	case api.KindFlavor:
		return watchcache.Apply(s.flavors, e)
	}
	return nil
}

func values[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}

func (s *state) founding() deploy.Founding { return s.ovn[ovnID].Spec }

// members are the nodes that vote; alone is this node when nobody does.
func (s *state) members(alone deploy.Member) []deploy.Member {
	var all []deploy.Member
	for id, n := range s.nodes {
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

// reports by node, of nodes that live: what a dead one said last would make
// databases look well that nobody has any more.
func (s *state) reports() map[string]deploy.Report {
	all := map[string]deploy.Report{}
	for id, c := range s.chassis {
		n, there := s.nodes[id]
		if there && n.Assignment.State != api.NodeLost && n.Assignment.State != api.NodeSuspect {
			all[id] = c.Status
		}
	}
	return all
}

// objects that the Topology is made from.
func (s *state) objects(cluster string) sdn.Objects {
	physical := map[api.NodeID][]string{}
	for id, c := range s.chassis {
		physical[api.NodeID(id)] = c.Status.Physical
	}
	return sdn.Objects{
		Cluster: cluster, Projects: values(s.projects), Networks: values(s.networks), SecurityGroups: values(s.groups),
		ExternalNetworks: values(s.external), Routers: values(s.routers), FloatingIPs: values(s.floating),
		LoadBalancers: values(s.balancers), Instances: values(s.instances), Migrations: values(s.migrations), Nodes: values(s.nodes), Physical: physical,
		Forbidden: s.forbidden(),
	}
}
