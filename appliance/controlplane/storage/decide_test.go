package storage

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// town is what a leader sees, and its Founding, step by step.
type town struct {
	t *testing.T
	f Founding
	observation
	drawn int
}

func newTown(t *testing.T) *town {
	w := &town{t: t, observation: observation{nodes: map[string]api.Node{}, disks: map[string]api.Disk{}, images: -1}}
	for _, n := range []string{"node-1", "node-2", "node-3"} {
		w.nodes[n] = api.Node{Meta: api.Meta{ID: n, Name: n}}
	}
	w.cluster = &api.CephCluster{Spec: api.CephClusterSpec{Enabled: true}}
	w.cluster.Assignment = api.CephClusterAssignment{Fsid: "f", Mons: []api.NodeID{"node-1", "node-2", "node-3"}, Mgrs: []api.NodeID{"node-1"}}
	return w
}

func (w *town) decide() *town {
	w.t.Helper()
	f, err := decide(w.f, w.observation, source{
		keys: func() (deploy.Keys, error) { return deploy.Keys{Mon: "m"}, nil },
		uuid: func() string { w.drawn++; return fmt.Sprintf("uuid-%d", w.drawn) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.f = f
	return w
}

// settled decides until nothing changes.
func (w *town) settled() *town {
	w.t.Helper()
	for range 10 {
		was := w.f
		if w.decide(); reflect.DeepEqual(was, w.f) {
			return w
		}
	}
	w.t.Fatalf("it goes on and on: %+v", w.f)
	return w
}

func (w *town) disk(id, node string, use api.DiskUse, state api.DiskState) *town {
	d := w.disks[id]
	d.Meta.ID, d.Spec.Use, d.Status.Node, d.Status.State = id, use, api.NodeID(node), state
	d.Meta.Generation++
	d.Status.Osd = -1
	w.disks[id] = d
	return w
}

// says that the node has seen what was decided about the disk.
func (w *town) says(id string, state api.DiskState) *town {
	d := w.disks[id]
	d.Status.State, d.Status.ObservedGeneration = state, d.Meta.Generation
	w.disks[id] = d
	return w
}

// mons answer, and know these OSDs.
func (w *town) mons(osds ...deploy.OSDState) *town {
	w.survey = &deploy.Survey{Cluster: deploy.Cluster{OSDs: osds}}
	return w
}

func (w *town) osds() string {
	var all []string
	for _, o := range w.f.OSDs {
		s := string(o.Disk) + "=" + o.UUID
		if o.Taken {
			s += "+taken"
		}
		if o.Wipe {
			s += "+wipe"
		}
		if o.Leaving {
			s += "+leaving"
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func (w *town) want(osds string) *town {
	w.t.Helper()
	if got := w.settled().osds(); got != osds {
		w.t.Errorf("the OSDs are %q, want %q", got, osds)
	}
	return w
}

// Without a CephCluster that is switched on nothing is decided at all.
func TestNothingWithoutASpec(t *testing.T) {
	w := newTown(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
	for name, c := range map[string]*api.CephCluster{"none": nil, "off": {Assignment: w.cluster.Assignment}, "not planned": {Spec: w.cluster.Spec}} {
		w.cluster = c
		if w.decide(); !reflect.DeepEqual(w.f, Founding{}) {
			t.Errorf("%s: %+v", name, w.f)
		}
	}
}

func TestLifeOfADisk(t *testing.T) {
	w := newTown(t)
	w.disk("disk-a", "node-1", "", api.DiskFree).want("")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).want("disk-a=uuid-1")
	w.mons(deploy.OSDState{ID: 0, UUID: "uuid-1", Up: true, In: true}).want("disk-a=uuid-1+taken")
	if !w.f.Exists {
		t.Error("there was a quorum, and it is not remembered")
	}
	w.disk("disk-a", "node-1", "", api.DiskReady).want("disk-a=uuid-1+taken+leaving")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskDraining).want("disk-a=uuid-1+taken") // taken back
	w.disk("disk-a", "node-1", "", api.DiskReady).want("disk-a=uuid-1+taken+leaving")
	w.mons() // purged
	w.want("disk-a=uuid-1+taken+leaving")
	w.disk("disk-a", "node-1", "", api.DiskFree).want("disk-a=uuid-1+taken+leaving") // that is from before
	w.says("disk-a", api.DiskDraining).want("disk-a=uuid-1+taken+leaving")
	w.says("disk-a", api.DiskFree).want("")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).want("disk-a=uuid-2") // never the same again
}

func TestDisksThatAreNotTaken(t *testing.T) {
	w := newTown(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskInUse)
	w.disk("disk-b", "node-1", api.DiskCeph, api.DiskFailed)
	w.disk("disk-c", "node-9", api.DiskCeph, api.DiskFree) // of a node that is no member
	w.want("")
	d := w.disks["disk-a"]
	d.Spec.Wipe = true
	w.disks["disk-a"] = d
	w.want("disk-a=uuid-1+wipe")
	w.mons(deploy.OSDState{UUID: "uuid-1", Up: true})
	w.want("disk-a=uuid-1+taken+wipe")
}

// A disk whose node was removed is taken out of the cluster and forgotten.
func TestNodeIsGone(t *testing.T) {
	w := newTown(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).mons(deploy.OSDState{UUID: "uuid-1", Up: true, In: true}).settled()
	delete(w.disks, "disk-a")
	w.want("disk-a=uuid-1+taken+leaving")
	w.survey = nil // nobody answers
	w.want("disk-a=uuid-1+taken+leaving")
	w.mons().want("")
}

// One founds, whatever becomes of the order, until there is a quorum.
func TestOneFounds(t *testing.T) {
	w := newTown(t).settled()
	w.cluster.Assignment.Mons = []api.NodeID{"node-0", "node-1", "node-2"}
	if w.settled(); w.f.Mons[0] != "node-1" || len(w.f.Mons) != 3 {
		t.Errorf("%v", w.f.Mons)
	}
	w.mons().settled()
	if w.f.Mons[0] != "node-0" {
		t.Errorf("%v", w.f.Mons)
	}
}

// It is taken down when it is switched off and holds nothing, and not before.
func TestTakenDown(t *testing.T) {
	w := newTown(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).mons(deploy.OSDState{UUID: "uuid-1", Up: true, In: true}).settled()
	was := w.f.Incarnation()
	w.cluster.Spec.Enabled = false
	w.disk("disk-a", "node-1", "", api.DiskReady)
	for _, images := range []int{-1, 2} {
		if w.images = images; w.settled().f.Dismantle {
			t.Errorf("%d images, and it is dismantled", images)
		}
	}
	w.images = 0
	if w.settled(); !w.f.Dismantle || w.f.FSID == "" {
		t.Errorf("%+v", w.f)
	}
	w.mons().says("disk-a", api.DiskFree).settled()
	if want := (Founding{Generation: 1, Retired: []Incarnation{was}}); !reflect.DeepEqual(w.f, want) {
		t.Errorf("%+v, want %+v", w.f, want)
	}
	w.survey, w.cluster.Spec.Enabled = nil, true
	if w.settled(); w.f.Generation != 2 || w.f.Exists || w.f.Incarnation() == was {
		t.Errorf("the second: %+v", w.f)
	}
}

func TestExplain(t *testing.T) {
	pool := deploy.Survey{Health: deploy.Health{Level: deploy.OK, Summary: "all data is there"}}
	pool.Cluster.Pools = []deploy.PoolState{{Name: Pool, Enabled: true}}
	for _, c := range []struct {
		name   string
		with   func(w *town)
		phase  api.CephPhase
		health api.CephHealth
		says   string
		next   string
	}{
		{"no monitor yet", func(*town) {}, api.CephDeploying, "", "first monitor", ""},
		{"it cannot be made", func(w *town) {
			n := w.nodes["node-1"]
			n.Status.Conditions = []api.Condition{{Type: condCeph, Message: "ceph-mon is not installed"}}
			w.nodes["node-1"] = n
		}, api.CephDeploying, "", "first monitor", "check node node-1: ceph-mon is not installed"},
		{"no disk", func(w *town) { w.survey = &deploy.Survey{Health: pool.Health} }, api.CephDeploying, api.CephWarning, "no disks", "basalt disk use"},
		{"too few nodes", func(w *town) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).disk("disk-b", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &deploy.Survey{Health: pool.Health}
		}, api.CephDeploying, api.CephWarning, "it has 1 nodes with disks, want at least 3", "add more"},
		{"ready", func(w *town) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.survey = &pool
			w.survey.Cluster.OSDs = []deploy.OSDState{{UUID: "uuid-1", Up: true, In: true}, {UUID: "uuid-2", Up: true, In: true}, {UUID: "uuid-3", Up: true, In: true}}
		}, api.CephReady, api.CephOK, "all data is there", ""},
		{"nowhere to go", func(w *town) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.survey = &pool
			w.settled().disk("disk-1", "node-1", "", api.DiskReady)
		}, api.CephReady, api.CephWarning, "it has 2 ", "does not fit"},
		{"nobody answers", func(w *town) {
			w.survey = &pool
			w.settled()
			w.survey, w.cluster.Status.Phase = nil, api.CephReady
		}, api.CephReady, api.CephError, "monitors are not reachable", "voting nodes"},
		{"switched off with volumes", func(w *town) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &pool
			w.settled()
			w.cluster.Spec.Enabled, w.images = false, 2
		}, api.CephDeploying, api.CephWarning, "contains 2 volumes and images", "delete"},
		{"switched off", func(w *town) { w.cluster.Spec.Enabled = false }, api.CephPending, "", "not enabled", ""},
	} {
		w := newTown(t)
		c.with(w)
		w.settled()
		st := explain(w.f, w.observation, errors.New("timed out"))
		if st.Phase != c.phase || st.Health != c.health || !strings.Contains(st.Summary, c.says) || !strings.Contains(st.Next, c.next) || c.next == "" && st.Next != "" {
			t.Errorf("%s: %+v", c.name, st)
		}
	}
}
