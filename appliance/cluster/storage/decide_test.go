package storage

import (
	"errors"
	"fmt"
	"net/netip"
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
	seen
	drawn int
}

func newTown(t *testing.T) *town {
	w := &town{t: t, seen: seen{nodes: map[string]api.Node{}, disks: map[string]api.Disk{}, images: -1}}
	for _, n := range []string{"node-1", "node-2", "node-3"} {
		w.nodes[n] = api.Node{Meta: api.Meta{ID: n, Name: n}}
	}
	w.cluster = &api.CephCluster{Spec: api.CephClusterSpec{Enabled: true}}
	w.cluster.Assignment = api.CephClusterAssignment{Fsid: "f", Mons: []api.NodeID{"node-1", "node-2", "node-3"}, Mgrs: []api.NodeID{"node-1"}}
	return w
}

func (w *town) decide() *town {
	w.t.Helper()
	f, err := decide(w.f, w.seen, source{
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
	in := intent(w.f, w.nodes, w.disks, place{node: "node-1", address: netip.MustParseAddr("127.0.0.1"), blocks: map[string]Block{"disk-a": {Path: "/dev/sda"}}})
	if len(in.Disks) != 1 || in.Disks[0].Wipe {
		t.Errorf("a disk with data is wiped again: %+v", in.Disks)
	}
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
	was := w.f.incarnation()
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
	if w.settled(); w.f.Generation != 2 || w.f.Exists || w.f.incarnation() == was {
		t.Errorf("the second: %+v", w.f)
	}
}

func TestIntent(t *testing.T) {
	w := newTown(t)
	for i, n := range []string{"node-1", "node-2", "node-3"} {
		o := w.nodes[n]
		o.Spec.PeerAddresses = []string{fmt.Sprintf("10.0.0.%d:7481", i+1)}
		w.nodes[n] = o
	}
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).disk("disk-b", "node-1", api.DiskCeph, api.DiskFree)
	w.disk("disk-c", "node-1", api.DiskCeph, api.DiskFree).disk("disk-d", "node-2", api.DiskCeph, api.DiskFree).settled()
	in := intent(w.f, w.nodes, w.disks, place{node: "node-1", dir: "/x", blocks: map[string]Block{
		"disk-a": {Path: "/dev/sda", ByID: "/dev/disk/by-id/a"},
		"disk-b": {Path: "/dev/sdb", Held: "it is mounted at /srv"},
	}})
	var paths []string
	for _, d := range in.Disks {
		paths = append(paths, d.Path)
	}
	// What somebody mounted is not touched, and what is gone is no other disk.
	if want := []string{"/dev/disk/by-id/a", "/x/gone/disk-c", "/dev/unknown"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %q, want %q", paths, want)
	}
	if len(in.Mons) != 3 || in.Mons[1].Address.String() != "10.0.0.2:3300" || in.Pools[0].Replicas != 3 || in.Pools[0].FailureDomain != "host" {
		t.Errorf("%+v", in)
	}
}

func TestDiskStatus(t *testing.T) {
	block := &Block{Path: "/dev/sdb"}
	osd := &OSD{UUID: "u"}
	taken, leaving := &OSD{UUID: "u", Taken: true}, &OSD{UUID: "u", Taken: true, Leaving: true}
	running := &deploy.Found{Content: deploy.OSD, UUID: "u", ID: 4, Made: true, Running: true}
	stopped := &deploy.Found{Content: deploy.OSD, UUID: "u", ID: 4, Made: true}
	blank := &deploy.Found{Content: deploy.Blank, ID: -1}
	round := func(states ...deploy.OSDState) deploy.Round {
		return deploy.Round{Seen: deploy.Observed{Cluster: &deploy.Cluster{OSDs: states}}}
	}
	up := deploy.OSDState{ID: 4, UUID: "u", Up: true, In: true}
	ceph, unused := api.Disk{Spec: api.DiskSpec{Use: api.DiskCeph}}, api.Disk{}
	wipe := ceph
	wipe.Spec.Wipe = true
	refused := round()
	refused.Did = []deploy.Action{{Do: deploy.Refuse, Name: "u", Why: "the disk is not empty: it holds ext4"}}
	failed := round()
	failed.Failed = map[string]error{"u": errors.New("input/output error")}
	for _, c := range []struct {
		name  string
		v     diskView
		state api.DiskState
		osd   int64
		says  string
	}{
		{"free", diskView{disk: unused, block: block}, api.DiskFree, -1, ""},
		{"mounted", diskView{disk: wipe, block: &Block{Held: "it is mounted at /srv"}}, api.DiskInUse, -1, "it is mounted at /srv"},
		{"not empty", diskView{disk: unused, block: &Block{Holds: "it holds ext4"}}, api.DiskInUse, -1, "--wipe"},
		{"to be wiped", diskView{disk: wipe, block: &Block{Holds: "it holds ext4"}}, api.DiskInUse, -1, "will be wiped"},
		{"no Ceph", diskView{disk: ceph, block: block, off: true}, api.DiskFree, -1, "basalt ceph enable"},
		{"pulled out", diskView{disk: unused}, api.DiskFailed, -1, "not there"},
		{"begun", diskView{disk: ceph, block: block, osd: osd, found: blank, round: round()}, api.DiskPreparing, -1, "being prepared"},
		{"refused", diskView{disk: ceph, block: block, osd: osd, found: blank, round: refused}, api.DiskFailed, -1, "it holds ext4"},
		{"failed", diskView{disk: ceph, block: block, osd: osd, found: blank, round: failed}, api.DiskFailed, -1, "input/output error"},
		{"mounted meanwhile", diskView{disk: ceph, block: &Block{Held: "it is mounted at /srv"}, osd: osd, round: round()}, api.DiskFailed, -1, "mounted"},
		{"not up yet", diskView{disk: ceph, block: block, osd: osd, found: running, round: round()}, api.DiskPreparing, 4, "not come up"},
		{"ready", diskView{disk: ceph, block: block, osd: osd, found: running, round: round(up)}, api.DiskReady, 4, ""},
		{"crashed", diskView{disk: ceph, block: block, osd: taken, found: stopped, round: round(up)}, api.DiskFailed, 4, "did not run"},
		{"died", diskView{disk: ceph, osd: taken, found: stopped, round: round(up)}, api.DiskFailed, 4, "not there"},
		{"nobody answers", diskView{disk: ceph, block: block, osd: taken, found: running}, api.DiskFailed, 4, "does not answer"},
		{"draining", diskView{disk: unused, block: block, osd: leaving, found: running, round: round(up)}, api.DiskDraining, 4, "moves"},
		{"drained", diskView{disk: unused, block: block, osd: leaving, found: running, round: round(deploy.OSDState{UUID: "u", Safe: true})}, api.DiskDraining, 4, "taken out"},
		{"purged", diskView{disk: unused, block: block, osd: leaving, found: stopped, round: round()}, api.DiskDraining, 4, "wiped"},
		{"released", diskView{disk: unused, block: block, osd: leaving, found: blank, round: round()}, api.DiskFree, -1, ""},
		{"released of no cluster", diskView{disk: unused, block: block, osd: leaving, found: blank, begun: true}, api.DiskFree, -1, ""},
	} {
		st := diskStatus("node-1", c.v)
		if st.State != c.state || st.Osd != c.osd || !strings.Contains(st.Reason, c.says) || c.says == "" && st.Reason != "" {
			t.Errorf("%s: %s, osd %d, %q", c.name, st.State, st.Osd, st.Reason)
		}
	}
	// What is said of a disk that leaves counts only since the node knows it.
	v := diskView{disk: unused, block: block, osd: osd, found: blank, round: round()}
	v.disk.Meta.Generation = 3
	if st := diskStatus("node-1", v); st.ObservedGeneration != 0 {
		t.Errorf("observed %d", st.ObservedGeneration)
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
		}, api.CephDeploying, "", "first monitor", "see to node node-1: ceph-mon is not installed"},
		{"no disk", func(w *town) { w.survey = &deploy.Survey{Health: pool.Health} }, api.CephDeploying, api.CephWarning, "no disks", "basalt disk use"},
		{"too few nodes", func(w *town) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).disk("disk-b", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &deploy.Survey{Health: pool.Health}
		}, api.CephDeploying, api.CephWarning, "3 copies are to be on different nodes with disks, of which it has 1", "give it more"},
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
		}, api.CephReady, api.CephWarning, "of which it has 2", "nowhere"},
		{"nobody answers", func(w *town) {
			w.survey = &pool
			w.settled()
			w.survey, w.cluster.Status.Phase = nil, api.CephReady
		}, api.CephReady, api.CephError, "monitors do not answer", "nodes that vote"},
		{"switched off with volumes", func(w *town) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &pool
			w.settled()
			w.cluster.Spec.Enabled, w.images = false, 2
		}, api.CephDeploying, api.CephWarning, "holds 2 volumes and images", "delete"},
		{"switched off", func(w *town) { w.cluster.Spec.Enabled = false }, api.CephPending, "", "switched off", ""},
	} {
		w := newTown(t)
		c.with(w)
		w.settled()
		st := explain(w.f, w.seen, errors.New("timed out"))
		if st.Phase != c.phase || st.Health != c.health || !strings.Contains(st.Summary, c.says) || !strings.Contains(st.Next, c.next) || c.next == "" && st.Next != "" {
			t.Errorf("%s: %+v", c.name, st)
		}
	}
}
