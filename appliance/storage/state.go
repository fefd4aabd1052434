package storage

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// NodeKinds are what every node follows, LeaderKinds what the leader does.
var (
	NodeKinds   = []api.Kind{api.KindNode, api.KindDisk, api.KindCephKeys}
	LeaderKinds = []api.Kind{api.KindNode, api.KindDisk, api.KindCephKeys, api.KindCephCluster}
)

// state is the objects that matter here, by id.
type state struct {
	nodes    map[string]api.Node
	disks    map[string]api.Disk
	ceph     map[string]Ceph
	clusters map[string]api.CephCluster
}

func newState() *state {
	return &state{nodes: map[string]api.Node{}, disks: map[string]api.Disk{}, ceph: map[string]Ceph{}, clusters: map[string]api.CephCluster{}}
}

// apply takes in one change.
func (s *state) apply(e api.Event) error {
	switch e.Object.Kind {
	case api.KindNode:
		return watchcache.Apply(s.nodes, e)
	case api.KindDisk:
		return watchcache.Apply(s.disks, e)
	case api.KindCephKeys:
		return watchcache.Apply(s.ceph, e)
	case api.KindCephCluster:
		return watchcache.Apply(s.clusters, e)
	}
	return nil
}

func (s *state) founding() Founding { return s.ceph[cephID].Spec }

// cluster is the CephCluster; nil: there is none.
func (s *state) cluster() *api.CephCluster {
	for _, id := range slices.Sorted(maps.Keys(s.clusters)) {
		c := s.clusters[id]
		return &c
	}
	return nil
}

// Apply implements watchcache.Picture: nodes report that they live all the time.
func (s *state) Apply(e api.Event) (bool, error) {
	was, known := s.nodes[e.Object.Meta.ID]
	if err := s.apply(e); err != nil {
		return false, err
	}
	now, there := s.nodes[e.Object.Meta.ID]
	same := known && there && slices.Equal(was.Spec.PeerAddresses, now.Spec.PeerAddresses) && was.Assignment.State == now.Assignment.State
	return e.Object.Kind != api.KindNode || !same, nil
}
