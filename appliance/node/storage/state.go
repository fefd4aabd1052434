package storage

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
)

// Kinds are the kinds that Node needs: the watch cache must have them.
var Kinds = append(slices.Clone(storage.Kinds), objects.Of[api.Volume]())

// poolVolumes counts the volumes that are assigned to a node's own pools, by pool.
func (s *state) poolVolumes(node api.NodeID) map[string]int {
	count := map[string]int{}
	for _, v := range s.volumes {
		if v.Assignment.Node == node && api.DiskPool(v.Assignment.Pool) {
			count[v.Assignment.Pool]++
		}
	}
	return count
}

// state has the objects that Node needs, by ID. It is read-only.
type state struct {
	nodes     map[string]api.Node
	disks     map[string]api.Disk
	volumes   map[string]api.Volume
	bootstrap storage.Bootstrap
}

func stateOf(s *objects.Set) *state {
	return &state{nodes: objects.Map[api.Node](s), disks: objects.Map[api.Disk](s), volumes: objects.Map[api.Volume](s), bootstrap: storage.BootstrapOf(s)}
}
