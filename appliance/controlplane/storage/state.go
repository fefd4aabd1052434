package storage

import (
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

var (
	nodeKind    = objects.Of[api.Node]()
	diskKind    = objects.Of[api.Disk]()
	cephKind    = objects.As[Ceph](api.KindCephKeys)
	clusterKind = objects.Of[api.CephCluster]()
)

// Kinds are the kinds of objects that the storage depends on; the cache must contain
// them.
var Kinds = []objects.Kind{nodeKind, diskKind, cephKind, clusterKind}

// Filters are the changes that the leader and the nodes follow. Nodes report their
// liveness all the time; only their addresses and their state in the cluster matter
// here.
var Filters = append(watchcache.Every(diskKind, cephKind),
	watchcache.When(nodeKind, func(was, now api.Node) bool {
		return !slices.Equal(was.Spec.PeerAddresses, now.Spec.PeerAddresses) || was.Status.StorageAddress != now.Status.StorageAddress || was.Assignment.State != now.Assignment.State
	}))

// state contains the relevant objects by ID. It is read-only.
type state struct {
	nodes    map[string]api.Node
	disks    map[string]api.Disk
	ceph     map[string]Ceph
	clusters map[string]api.CephCluster
}

func stateOf(s *objects.Set) *state {
	return &state{nodes: objects.Map[api.Node](s), disks: objects.Map[api.Disk](s), ceph: objects.Map[Ceph](s), clusters: objects.Map[api.CephCluster](s)}
}

// BootstrapOf returns the leader's decision about the Ceph cluster.
func BootstrapOf(s *objects.Set) Bootstrap { return objects.Map[Ceph](s)[cephID].Spec }

func (s *state) bootstrap() Bootstrap { return s.ceph[cephID].Spec }

// cluster returns the CephCluster, or nil if there is none.
func (s *state) cluster() *api.CephCluster {
	for _, id := range slices.Sorted(maps.Keys(s.clusters)) {
		c := s.clusters[id]
		return &c
	}
	return nil
}
