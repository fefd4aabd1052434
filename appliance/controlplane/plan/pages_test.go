package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// reserves adds huge pages to a node.
func (s *State) reserves(id string, size api.HugePages, bytes int64) {
	n := s.Nodes[id]
	n.Status.HugePages = append(n.Status.HugePages, api.NodeHugePages{Size: size, TotalBytes: bytes, FreeBytes: bytes})
	s.Nodes[id] = n
}

// pagesOf sets the huge pages of a flavor.
func (s *State) pagesOf(flavor string, size api.HugePages) {
	f := s.Flavors[flavor]
	f.Spec.HugePages = size
	s.Flavors[flavor] = f
}

// An instance with huge pages is placed where enough are reserved and not assigned, and
// uses none of the ordinary memory.
func TestHugePagesArePlaced(t *testing.T) {
	s := cluster().node("n1", 100*gib).node("n2", gib/4).node("n3", gib)
	s.reserves("n2", api.HugePages2Mi, 2*gib)
	s.reserves("n3", api.HugePages1Gi, 8*gib)
	s.pagesOf("flv-1", api.HugePages2Mi)
	for _, id := range []string{"a", "b", "c"} {
		s.instance(id, "flv-1", 0, 0)
	}
	settle(t, s)
	for _, id := range []string{"a", "b"} {
		if a := s.Instances[id].Assignment; a.Node != "n2" || a.HugePages != api.HugePages2Mi || a.MemoryBytes != gib {
			t.Errorf("instance %s: %+v, want 1 GiB of huge pages of n2", id, a)
		}
	}
	if a := s.Instances["c"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "n1: has no huge pages of 2 MiB; n2: 1 GiB of RAM in huge pages of 2 MiB requested, 0 B of 2 GiB free") {
		t.Errorf("assignment of c = %+v, want none for lack of huge pages", a)
	}
	if free := room(s).FreeMemory(s.Nodes["n2"]); free != gib/4 {
		t.Errorf("%d bytes of ordinary memory are free on n2, want all %d", free, gib/4)
	}
}

// A stopped instance whose flavor requests huge pages from now on is placed again; a
// running one stays as it is, also when it is migrated.
func TestHugePagesResize(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	s.pagesOf("flv-1", api.HugePages2Mi)
	in := s.Instances["a"]
	in.Meta.Generation++
	s.Instances["a"] = in
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.HugePages != "" {
		t.Errorf("assignment of the running instance = %+v, want ordinary pages", a)
	}
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.MigrateTo != "n3" {
		t.Errorf("assignment of an instance with ordinary pages = %+v, want migrateTo n3, which has no huge ones", a)
	}
	s = three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	in = s.Instances["a"]
	in.Assignment.HugePages = api.HugePages2Mi
	s.Instances["a"] = in
	s.reserves("n1", api.HugePages2Mi, gib)
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a"}}
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.MigrateTo != "n1" {
		t.Errorf("assignment of an instance with huge pages = %+v, want migrateTo n1, which has them", a)
	}
}

// A virtual GPU's workers cannot map huge pages.
func TestHugePagesAndVGPU(t *testing.T) {
	s := cluster().node("n1", 100*gib).gpu("g1", "n1", 10*gib).instance("a", "flv-1", gib, 0)
	s.reserves("n1", api.HugePages2Mi, 2*gib)
	s.pagesOf("flv-1", api.HugePages2Mi)
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "" || !strings.Contains(a.Reason, api.HugePagesWithoutVGPU) {
		t.Errorf("assignment of an instance with huge pages and a vGPU = %+v, want none", a)
	}
}
