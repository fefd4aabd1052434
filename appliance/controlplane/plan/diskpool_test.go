package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// diskPool gives a node a storage pool on a disk of its own.
func (s *State) diskPool(node string, p api.StoragePool) *State {
	n := s.Nodes[node]
	n.Status.Pools = append(n.Status.Pools, p)
	s.Nodes[node] = n
	return s
}

// Volumes and root volumes that request a pool on a disk are placed on nodes that have
// it, each pool has a limit of its own, and one that is being released gets nothing
// new.
func TestPoolsOnDisks(t *testing.T) {
	s := cluster().node("n1", 8*gib).node("n2", 8*gib)
	s.limitDisk("n1", 100*gib)
	s.limitDisk("n2", 100*gib)
	s.diskPool("n2", api.StoragePool{Name: "fast", Disk: "disk-1", SizeBytes: 10 * gib, FreeBytes: 10 * gib, LimitBytes: 20 * gib})
	volume := func(id, pool string, size int64) {
		s.Volumes[id] = api.Volume{Meta: api.Meta{ID: id, Name: id}, Spec: api.VolumeSpec{SizeBytes: size, Pool: pool}}
	}
	volume("v1", "fast", 10*gib)
	volume("v2", "fast", 8*gib)
	volume("v3", "fast", 5*gib)
	volume("v4", "", 9*gib)
	volume("v5", "slow", gib)
	settle(t, s)
	for id, want := range map[string]api.VolumeAssignment{"v1": {Node: "n2", Pool: "fast"}, "v2": {Node: "n2", Pool: "fast"}} {
		if a := s.Volumes[id].Assignment; a != want {
			t.Errorf("assignment of %s = %+v, want %+v", id, a, want)
		}
	}
	if a := s.Volumes["v3"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "5 GiB of storage pool fast requested, 18 GiB of 20 GiB allocated") {
		t.Errorf("assignment of v3, beyond the limit of its pool = %+v, want none with the reason", a)
	}
	if a := s.Volumes["v4"].Assignment; a.Node == "" || a.Pool != api.PoolLocal {
		t.Errorf("assignment of v4, without a pool = %+v, want a node and the local pool", a)
	}
	if a := s.Volumes["v5"].Assignment; a.Node != "" {
		t.Errorf("assignment of v5, in a pool that no node has = %+v, want none", a)
	}

	s.instance("i1", "flv-1", 0, 0)
	in := s.Instances["i1"]
	in.Spec.StoragePool, in.Spec.RootBytes = "fast", 2*gib
	s.Instances["i1"] = in
	settle(t, s)
	if a := s.Instances["i1"].Assignment; a.Node != "n2" {
		t.Errorf("assignment of an instance with its root volume in pool fast = %+v, want node n2", a)
	}

	n := s.Nodes["n2"]
	n.Status.Pools[len(n.Status.Pools)-1].Draining = true
	n.Status.Pools[len(n.Status.Pools)-1].LimitBytes = 100 * gib
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Volumes["v3"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "storage pool fast is being released") {
		t.Errorf("assignment of v3 in a pool that is being released = %+v, want none with the reason", a)
	}
}
