// Package plan places instances, volumes and other objects: it consists of pure
// functions from the cluster's objects to the commands that the leader commits. Time
// and randomness are parameters; the package performs no input or output.
package plan

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// Kinds lists the kinds of objects that the planner reads.
var Kinds = []objects.Kind{
	objects.Of[api.Node](), objects.Of[api.GPU](), objects.Of[api.GPUPool](), objects.Of[api.Flavor](), objects.Of[api.Image](),
	objects.Of[api.Volume](), objects.Of[api.Instance](), objects.Of[api.Migration](),
	objects.Of[api.Network](), objects.Of[api.ExternalNetwork](), objects.Of[api.Router](), objects.Of[api.FloatingIP](), objects.Of[api.LoadBalancer](),
	objects.Of[api.Snapshot](), objects.Of[api.Backup](), objects.Of[api.Disk](), objects.Of[api.CephCluster](), objects.Of[api.Organization](), objects.Of[api.Upgrade](),
}

// State is the input of the planner: every object of Kinds, by ID. The planner does not
// change it.
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
	Upgrades         map[string]api.Upgrade

	// Health is the leader's observation of each node, and Self the leader's own ID:
	// they are not from the store. Nil Health means that the node is alone, and not
	// monitored.
	Health map[string]Health
	Self   string
}

// Health is the state of a node according to leases and witnesses.
type Health = placement.Health

// StateOf returns the state with the objects of Kinds; the caller sets Health and Self.
func StateOf(s *objects.Set) *State {
	return &State{
		Nodes:            objects.Map[api.Node](s),
		GPUs:             objects.Map[api.GPU](s),
		Pools:            objects.Map[api.GPUPool](s),
		Flavors:          objects.Map[api.Flavor](s),
		Images:           objects.Map[api.Image](s),
		Volumes:          objects.Map[api.Volume](s),
		Instances:        objects.Map[api.Instance](s),
		Migrations:       objects.Map[api.Migration](s),
		Networks:         objects.Map[api.Network](s),
		ExternalNetworks: objects.Map[api.ExternalNetwork](s),
		Routers:          objects.Map[api.Router](s),
		FloatingIPs:      objects.Map[api.FloatingIP](s),
		LoadBalancers:    objects.Map[api.LoadBalancer](s),
		Snapshots:        objects.Map[api.Snapshot](s),
		Backups:          objects.Map[api.Backup](s),
		Disks:            objects.Map[api.Disk](s),
		Ceph:             objects.Map[api.CephCluster](s),
		Organizations:    objects.Map[api.Organization](s),
		Upgrades:         objects.Map[api.Upgrade](s),
	}
}
