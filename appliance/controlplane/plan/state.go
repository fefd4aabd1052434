// Package plan decides where things go: pure functions from the cluster's
// objects to the commands that the leader commits. Time and randomness come
// in; nothing is read and nothing is done here.
package plan

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Kinds that the planner looks at.
var Kinds = []api.Kind{api.KindNode, api.KindGPU, api.KindGPUPool, api.KindFlavor, api.KindImage, api.KindVolume, api.KindInstance, api.KindMigration,
	api.KindNetwork, api.KindExternalNetwork, api.KindRouter, api.KindFloatingIP, api.KindLoadBalancer,
	api.KindSnapshot, api.KindBackup, api.KindDisk, api.KindCephCluster, api.KindOrganization}

// State is what the planner looks at: every object of the kinds that matter,
// decoded once, kept up to date by Apply.
type State struct {
	Nodes      map[string]api.Node
	GPUs       map[string]api.GPU
	Pools      map[string]api.GPUPool
	Flavors    map[string]api.Flavor
	Images     map[string]api.Image
	Volumes    map[string]api.Volume
	Instances  map[string]api.Instance
	Migrations map[string]api.Migration

	Networks         map[string]api.Network
	ExternalNetworks map[string]api.ExternalNetwork
	Routers          map[string]api.Router
	FloatingIPs      map[string]api.FloatingIP
	LoadBalancers    map[string]api.LoadBalancer
	Snapshots        map[string]api.Snapshot
	Backups          map[string]api.Backup
	Disks            map[string]api.Disk
	Ceph             map[string]api.CephCluster
	Organizations    map[string]api.Organization

	// Health is what the leader hears of each node, and Self the leader's own
	// id: not from the store. Nil: the node is alone, nobody watches.
	Health map[string]Health
	Self   string
}

// Health of a node, as leases and witnesses have it.
type Health struct {
	Suspect bool   // not heard of, by several witnesses
	Fenced  bool   // certainly runs nothing any more that could run elsewhere
	Why     string // in words
}

// NewState is an empty cluster.
func NewState() *State {
	return &State{
		Nodes: map[string]api.Node{}, GPUs: map[string]api.GPU{}, Pools: map[string]api.GPUPool{},
		Flavors: map[string]api.Flavor{}, Images: map[string]api.Image{},
		Volumes: map[string]api.Volume{}, Instances: map[string]api.Instance{}, Migrations: map[string]api.Migration{},
		Networks: map[string]api.Network{}, ExternalNetworks: map[string]api.ExternalNetwork{}, Routers: map[string]api.Router{},
		FloatingIPs: map[string]api.FloatingIP{}, LoadBalancers: map[string]api.LoadBalancer{},
		Snapshots: map[string]api.Snapshot{}, Backups: map[string]api.Backup{}, Disks: map[string]api.Disk{}, Ceph: map[string]api.CephCluster{},
		Organizations: map[string]api.Organization{},
	}
}

// Apply takes in one change. It reports whether the planner cares.
func (s *State) Apply(e api.Event) (bool, error) {
	switch e.Object.Kind {
	case api.KindNode:
		return apply(s.Nodes, e)
	case api.KindGPU:
		return apply(s.GPUs, e)
	case api.KindGPUPool:
		return apply(s.Pools, e)
	case api.KindFlavor:
		return apply(s.Flavors, e)
	case api.KindImage:
		return apply(s.Images, e)
	case api.KindVolume:
		return apply(s.Volumes, e)
	case api.KindInstance:
		return apply(s.Instances, e)
	case api.KindMigration:
		return apply(s.Migrations, e)
	case api.KindNetwork:
		return apply(s.Networks, e)
	case api.KindExternalNetwork:
		return apply(s.ExternalNetworks, e)
	case api.KindRouter:
		return apply(s.Routers, e)
	case api.KindFloatingIP:
		return apply(s.FloatingIPs, e)
	case api.KindLoadBalancer:
		return apply(s.LoadBalancers, e)
	case api.KindSnapshot:
		return apply(s.Snapshots, e)
	case api.KindBackup:
		return apply(s.Backups, e)
	case api.KindDisk:
		return apply(s.Disks, e)
	case api.KindCephCluster:
		return apply(s.Ceph, e)
	case api.KindOrganization:
		return apply(s.Organizations, e)
	}
	return false, nil
}

func apply[T any](m map[string]T, e api.Event) (bool, error) {
	if e.Type == api.EventRemove {
		delete(m, e.Object.Meta.ID)
		return true, nil
	}
	t, err := api.Decode[T](e.Object)
	if err != nil {
		return false, err
	}
	m[e.Object.Meta.ID] = t
	return true, nil
}

// sorted lists a map's values by id, so that plans do not depend on map order.
func sorted[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
