package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// data adds a data volume that is to be attached to an instance.
func (s *State) data(id, pool string, node api.NodeID, in api.InstanceID) *State {
	s.Volumes[id] = api.Volume{Meta: api.Meta{ID: id, Name: id, Finalizers: []string{"agent"}}, Spec: api.VolumeSpec{Instance: in, Pool: pool},
		Assignment: api.VolumeAssignment{Node: node, Pool: pool, Epoch: 3}}
	return s
}

func (s *State) attached(id string, in api.InstanceID) {
	v := s.Volumes[id]
	v.Status.Attached = in
	s.Volumes[id] = v
}

func (s *State) requestInstance(id string, in api.InstanceID) {
	v := s.Volumes[id]
	v.Spec.Instance = in
	s.Volumes[id] = v
}

// An instance that moves to another node takes its volumes in shared pools along in one
// batch, and their epochs rise.
func TestVolumesGoWithTheirInstance(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	s.data("data", "shared", "n2", "a").attached("data", "a")
	s.data("asked", "shared", "n2", "a")
	s.data("other", "shared", "n2", "")
	s.fence("n2")
	for {
		groups := Groups(next(t, s, now))
		if len(groups) == 0 {
			break
		}
		for _, g := range groups {
			var ids []string
			for _, c := range g {
				ids = append(ids, c.ID)
				commit(t, s, c)
			}
			if slices.Contains(ids, "a") && s.Instances["a"].Assignment.Node != "n2" && !slices.Equal(ids, []string{"asked", "data", "a"}) {
				t.Errorf("batch that moves a = %v, want it to contain its volumes first", ids)
			}
		}
	}
	to := s.Instances["a"].Assignment.Node
	for _, id := range []string{"data", "asked", "vol-a"} {
		if v := s.Volumes[id].Assignment; v.Node != to || to == "n2" || id != "vol-a" && v.Epoch != 4 {
			t.Errorf("assignment of volume %s = %+v, want node %s with its instance, and epoch 4 for data volumes", id, v, to)
		}
	}
	if v := s.Volumes["other"].Assignment; v.Node == "n2" || v.Epoch != 4 {
		t.Errorf("assignment of the detached volume = %+v, want another node than n2 and epoch 4", v)
	}
}

// A volume stays with an instance that may have it open, whatever is requested and
// whatever happens to its node.
func TestAnOpenVolumeStays(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0).instance("b", "flv-1", 0, 0)
	s.spec("a", func(i *api.InstanceSpec) { i.StoragePool = "local" })
	s.on(t, "n2")
	b := s.Instances["b"]
	b.Assignment.Node = "n3"
	s.Instances["b"] = b
	s.data("data", "shared", "n2", "b").attached("data", "a")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n2" {
		t.Fatalf("assignment of the open volume = %+v, want node n2", v)
	}
	// The node is lost, and a continues to run there: it cannot run anywhere else.
	s.fence("n2")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n2" {
		t.Fatalf("assignment of the volume that is open on a lost node = %+v, want node n2", v)
	}
	s.attached("data", "")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n3" || v.Epoch <= 3 {
		t.Errorf("assignment of the detached volume = %+v, want node n3 and a higher epoch", v)
	}
}

// An instance is placed where its node-local volumes are, or stays pending.
func TestLocalVolumesBind(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0).data("data", "local", "n2", "a")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Errorf("assignment of a = %+v, want node n2", a)
	}
	s.attached("data", "a")
	s.running()
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a"}}
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, "its volume data is stored on node n2") {
		t.Errorf("migration of an instance with a local volume = %+v, want it failed because of the volume", m)
	}
	n := s.Nodes["n2"]
	n.Spec.Drain = true
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Nodes["n2"].Assignment; a.State != api.NodeDraining || !strings.Contains(a.Reason, "its volume data is stored on this node: it can be migrated when it is stopped") {
		t.Errorf("assignment of the drained node n2 = %+v, want it draining because of volume data", a)
	}
	n = s.Nodes["n2"]
	n.Spec.Drain = false
	s.Nodes["n2"] = n
	s.fence("n2")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "its volume data is stored on node n2, which is not available") {
		t.Errorf("assignment of a after its node was lost = %+v, want none because of volume data", a)
	}
	delete(s.Health, "n2")
	n = s.Nodes["n2"]
	n.Status.ObservedEpoch = n.Assignment.Epoch
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.Reason != "" {
		t.Errorf("assignment of a after its node returned = %+v, want node n2 and no reason", a)
	}
	// An instance with two volumes on two nodes cannot be placed.
	s.instance("b", "flv-1", 0, 0).data("one", "local", "n1", "b").data("two", "local", "n3", "b")
	settle(t, s)
	if b := s.Instances["b"].Assignment; b.Node != "" || !strings.Contains(b.Reason, "its volume two is stored on node n3") {
		t.Errorf("assignment of b = %+v, want none because of volume two", b)
	}
	// A volume that is attached later and is not reachable gets a reason.
	s.data("late", "local", "n3", "a")
	settle(t, s)
	if v := s.Volumes["late"].Assignment; v.Node != "n3" || !strings.Contains(v.Reason, "its instance is on node n2") {
		t.Errorf("assignment of volume late = %+v, want node n3 and the reason", v)
	}
	s.requestInstance("late", "")
	settle(t, s)
	if v := s.Volumes["late"].Assignment; v.Reason != "" {
		t.Errorf("assignment of the detached volume late = %+v, want no reason", v)
	}
}

// Whatever happens in whatever order, no volume is open on two nodes, no node-local one
// leaves its node, and epochs rise. The agents and the fence are modeled: they act on
// the committed state, with delays.
func TestVolumesAreOpenOnce(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { volumesAreOpenOnce(t, rand.New(rand.NewPCG(seed, 11))) })
	}
}

func volumesAreOpenOnce(t *testing.T, r *rand.Rand) {
	s := three()
	names := []string{"n1", "n2", "n3"}
	for i := range 4 {
		s.instance(fmt.Sprintf("i%d", i), "flv-1", 0, 0)
		s.spec(fmt.Sprintf("i%d", i), func(i *api.InstanceSpec) { i.StoragePool = []string{"shared", "shared", "local"}[r.IntN(3)] })
	}
	for i := range 4 {
		s.data(fmt.Sprintf("d%d", i), []string{"shared", "shared", "local"}[r.IntN(3)], api.NodeID(names[r.IntN(3)]), "")
	}
	runs := map[string]api.NodeID{}      // instance → node that its machine runs on
	open := map[string]map[string]bool{} // instance → data volumes that its machine has open
	down := map[string]bool{}            // nodes that are cut off: their agents write nothing
	some := func(m string) string { return fmt.Sprintf("%s%d", m, r.IntN(4)) }
	movable := func(id string) bool { in := s.Instances[id]; return api.Movable(in, root(s, in)) }
	agents := func() {
		for _, id := range []string{"i0", "i1", "i2", "i3"} {
			in := s.Instances[id]
			node := string(in.Assignment.Node)
			if at, is := runs[id]; is && string(at) != node && !down[string(at)] || is && down[string(at)] && s.Health[string(at)].Fenced && movable(id) {
				delete(runs, id) // released, or killed
				delete(open, id)
			}
			if node == "" || down[node] || r.IntN(3) == 0 {
				continue
			}
			if runs[id] == "" {
				open[id] = map[string]bool{}
				runs[id] = in.Assignment.Node
			}
			if string(runs[id]) != node {
				t.Fatalf("%s runs on %s and is assigned to %s", id, runs[id], node)
			}
			in.Status.Phase, in.Status.Node, in.Status.Epoch = api.InstanceRunning, in.Assignment.Node, in.Assignment.Epoch
			s.Instances[id] = in
			for _, d := range []string{"d0", "d1", "d2", "d3"} {
				v := s.Volumes[d]
				switch {
				case string(v.Assignment.Node) != node || in.Assignment.MigrateTo != "" || r.IntN(3) == 0:
				case string(v.Status.Attached) == id && string(v.Spec.Instance) != id:
					delete(open[id], d)
					s.attached(d, "")
				case string(v.Status.Attached) == id:
					open[id][d] = true
				case v.Status.Attached == "" && string(v.Spec.Instance) == id:
					s.attached(d, v.Spec.Instance) // reported before it is opened
				}
			}
		}
	}
	check := func(what string) {
		t.Helper()
		at := map[string]string{}
		for id, volumes := range open {
			for d := range volumes {
				if at[d] != "" {
					t.Fatalf("%s: %s is open in %s and in %s, want in one", what, d, at[d], id)
				}
				at[d] = id
			}
		}
		for id, in := range s.Instances {
			for _, v := range s.Volumes {
				if in.Assignment.Node != "" && string(v.Status.Attached) == id && !api.SharedPool(v.Assignment.Pool) && v.Assignment.Node != in.Assignment.Node {
					t.Fatalf("%s: %s is assigned to %s, but its volume %s is on %s", what, id, in.Assignment.Node, v.Meta.ID, v.Assignment.Node)
				}
			}
		}
	}
	for range 60 {
		what := ""
		switch n := names[r.IntN(3)]; r.IntN(6) {
		case 0:
			d, in := some("d"), some("i")
			if v := s.Volumes[d]; v.Status.Attached == "" || string(v.Status.Attached) == in { // as the API checks
				s.requestInstance(d, api.InstanceID(in))
				what = "attach " + d + " to " + in
			}
		case 1:
			what = some("d")
			s.requestInstance(what, "")
		case 2:
			if len(down) == 0 {
				down[n], what = true, n+" is cut off"
				s.Health[n] = Health{Suspect: true}
			}
		case 3:
			if down[n] {
				what = n + " is fenced"
				s.fence(n)
			}
		case 4:
			if down[n] {
				what = n + " is back"
				delete(down, n)
				delete(s.Health, n)
				node := s.Nodes[n]
				node.Status.ObservedEpoch = node.Assignment.Epoch
				for id, at := range runs { // it first releases what is not assigned to it any more
					if string(at) == n && string(s.Instances[id].Assignment.Node) != n {
						delete(runs, id)
						delete(open, id)
					}
				}
				s.Nodes[n] = node
			}
		case 5:
			in := some("i")
			if s.Instances[in].Status.Phase == api.InstanceRunning {
				m := "m" + fmt.Sprint(len(s.Migrations))
				s.Migrations[m] = api.Migration{Meta: api.Meta{ID: m}, Spec: api.MigrationSpec{Instance: api.InstanceID(in)}}
				what = "migrate " + in
			}
		}
		for range 1 + r.IntN(4) {
			for _, g := range Groups(next(t, s, now)) {
				if r.IntN(4) == 0 {
					continue // refused: it is planned again
				}
				for _, c := range g {
					was, isVolume := s.Volumes[c.ID]
					commit(t, s, c)
					is := s.Volumes[c.ID]
					if isVolume && !is.Spec.Root && was.Assignment.Node != is.Assignment.Node {
						if !api.SharedPool(was.Assignment.Pool) || is.Assignment.Epoch <= was.Assignment.Epoch {
							t.Fatalf("%s: assignment of %s changes from %+v to %+v, want a shared pool and a higher epoch", what, c.ID, was.Assignment, is.Assignment)
						}
					}
				}
			}
			for id, m := range s.Migrations { // the machine leaves with its disks
				in := s.Instances[string(m.Spec.Instance)]
				if a := m.Assignment; a.Phase == api.MigrationPreparing && m.Status.Phase == "" && runs[in.Meta.ID] == a.Source && in.Assignment.Node == a.Source && !down[string(a.Source)] && !down[string(a.Target)] {
					runs[in.Meta.ID] = a.Target
					m.Status.Phase = api.MigrationSucceeded
					s.Migrations[id] = m
				}
			}
			check(what)
			if !migrating(s) {
				agents()
			}
			check(what)
		}
	}
}

func migrating(s *State) bool {
	for _, m := range s.Migrations {
		if !m.Assignment.Phase.Ended() && m.Status.Phase != "" {
			return true
		}
	}
	return false
}

// A volume that is to leave a pending instance: no node has it open, and one that
// reaches the pool ends it, or attaches it to another instance.
func TestVolumeOfQueuedInstance(t *testing.T) {
	for name, change := range map[string]func(*api.Volume){
		"deleted":   func(v *api.Volume) { at := now; v.Meta.DeletedAt = &at },
		"taken off": func(v *api.Volume) { v.Spec.Instance = "" },
		"stays":     func(*api.Volume) {},
	} {
		s := three().instance("a", "flv-1", 0, 0)
		s.on(t, "n2")
		s.data("data", "shared", "n2", "a").attached("data", "a")
		s.fence("n2")
		for id, n := range s.Nodes {
			n.Status.MemoryBytes = 0
			s.Nodes[id] = n
		}
		settle(t, s)
		if in := s.Instances["a"].Assignment; in.Node != "" {
			t.Fatalf("assignment of a = %+v, want none", in)
		}
		v := s.Volumes["data"]
		change(&v)
		s.Volumes["data"] = v
		settle(t, s)
		if got := s.Volumes["data"].Assignment; (got.Node == "n2") != (name == "stays") {
			t.Errorf("%s: assignment of the volume = %+v, want it to leave n2 unless it stays", name, got)
		}
	}
}
