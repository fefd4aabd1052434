package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// data makes a data volume that is to be an instance's.
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

func (s *State) asks(id string, in api.InstanceID) {
	v := s.Volumes[id]
	v.Spec.Instance = in
	s.Volumes[id] = v
}

// An instance that goes to another node takes its volumes of shared pools along
// in one batch, and their epochs rise.
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
				t.Errorf("in one batch: %v", ids)
			}
		}
	}
	to := s.Instances["a"].Assignment.Node
	for _, id := range []string{"data", "asked", "vol-a"} {
		if v := s.Volumes[id].Assignment; v.Node != to || to == "n2" || id != "vol-a" && v.Epoch != 4 {
			t.Errorf("%s: %+v, its instance is on %s", id, v, to)
		}
	}
	if v := s.Volumes["other"].Assignment; v.Node == "n2" || v.Epoch != 4 {
		t.Errorf("one of nobody's: %+v", v)
	}
}

// A volume stays with an instance that may have it open, whatever is asked for
// and whatever became of its node.
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
		t.Fatalf("given away while it is open: %+v", v)
	}
	// The node is lost, and a goes on running there: it can run nowhere else.
	s.fence("n2")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n2" {
		t.Fatalf("given away while it is open on a lost node: %+v", v)
	}
	s.attached("data", "")
	settle(t, s)
	if v := s.Volumes["data"].Assignment; v.Node != "n3" || v.Epoch <= 3 {
		t.Errorf("%+v", v)
	}
}

// An instance is placed where its volumes of a node's own are, or nowhere.
func TestLocalVolumesBind(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0).data("data", "local", "n2", "a")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Errorf("%+v", a)
	}
	s.attached("data", "a")
	s.running()
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a"}}
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, "its volume data is stored on node n2") {
		t.Errorf("%+v", m)
	}
	n := s.Nodes["n2"]
	n.Spec.Drain = true
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Nodes["n2"].Assignment; a.State != api.NodeDraining || !strings.Contains(a.Reason, "its volume data is stored on this node") {
		t.Errorf("%+v", a)
	}
	n = s.Nodes["n2"]
	n.Spec.Drain = false
	s.Nodes["n2"] = n
	s.fence("n2")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "its volume data is stored on node n2, which is not available") {
		t.Errorf("%+v", a)
	}
	delete(s.Health, "n2")
	n = s.Nodes["n2"]
	n.Status.ObservedEpoch = n.Assignment.Epoch
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.Reason != "" {
		t.Errorf("when its node is back: %+v", a)
	}
	// Two volumes on two nodes: nowhere.
	s.instance("b", "flv-1", 0, 0).data("one", "local", "n1", "b").data("two", "local", "n3", "b")
	settle(t, s)
	if b := s.Instances["b"].Assignment; b.Node != "" || !strings.Contains(b.Reason, "its volume two is stored on node n3") {
		t.Errorf("%+v", b)
	}
	// A volume that comes later and cannot be had says so.
	s.data("late", "local", "n3", "a")
	settle(t, s)
	if v := s.Volumes["late"].Assignment; v.Node != "n3" || !strings.Contains(v.Reason, "its instance is on node n2") {
		t.Errorf("%+v", v)
	}
	s.asks("late", "")
	settle(t, s)
	if v := s.Volumes["late"].Assignment; v.Reason != "" {
		t.Errorf("%+v", v)
	}
}

// Whatever happens in whatever order, no volume is open on two nodes, none that
// lies on a node leaves it, and epochs rise. What agents and the fence do is
// modelled: they act on what is committed, when they come to it.
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
	runs := map[string]api.NodeID{}      // instance → where its machine is
	open := map[string]map[string]bool{} // instance → data volumes that its machine has
	down := map[string]bool{}            // nodes that are cut off: their agents write nothing
	some := func(m string) string { return fmt.Sprintf("%s%d", m, r.IntN(4)) }
	movable := func(id string) bool { in := s.Instances[id]; return api.Movable(in, root(s, in)) }
	agents := func() {
		for _, id := range []string{"i0", "i1", "i2", "i3"} {
			in := s.Instances[id]
			node := string(in.Assignment.Node)
			if at, is := runs[id]; is && string(at) != node && !down[string(at)] || is && down[string(at)] && s.Health[string(at)].Fenced && movable(id) {
				delete(runs, id) // given up, or killed
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
				t.Fatalf("%s runs on %s and is given to %s", id, runs[id], node)
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
					s.attached(d, v.Spec.Instance) // said first
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
					t.Fatalf("%s: %s is open in %s and in %s", what, d, at[d], id)
				}
				at[d] = id
			}
		}
		for id, in := range s.Instances {
			for _, v := range s.Volumes {
				if in.Assignment.Node != "" && string(v.Status.Attached) == id && !api.SharedPool(v.Assignment.Pool) && v.Assignment.Node != in.Assignment.Node {
					t.Fatalf("%s: %s is on %s, away from its volume %s on %s", what, id, in.Assignment.Node, v.Meta.ID, v.Assignment.Node)
				}
			}
		}
	}
	for range 60 {
		what := ""
		switch n := names[r.IntN(3)]; r.IntN(6) {
		case 0:
			d, in := some("d"), some("i")
			if v := s.Volumes[d]; v.Status.Attached == "" || string(v.Status.Attached) == in { // as the API has it
				s.asks(d, api.InstanceID(in))
				what = "attach " + d + " to " + in
			}
		case 1:
			what = some("d")
			s.asks(what, "")
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
				for id, at := range runs { // it gives up what is not its own first
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
							t.Fatalf("%s: %s goes from %+v to %+v", what, c.ID, was.Assignment, is.Assignment)
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

// A volume that is to go from an instance which waits for room: no node has that
// open, and one that reaches the pool ends it, or lets another instance have it.
func TestAVolumeOfAnInstanceThatWaits(t *testing.T) {
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
			t.Fatalf("it does not wait: %+v", in)
		}
		v := s.Volumes["data"]
		change(&v)
		s.Volumes["data"] = v
		settle(t, s)
		if got := s.Volumes["data"].Assignment; (got.Node == "n2") != (name == "stays") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
