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

// fixture is the state that a leader observes, and its Bootstrap after each decision.
type fixture struct {
	t *testing.T
	f Bootstrap
	observation
	generated int
	level     bool // all members support the storage network
}

func newFixture(t *testing.T) *fixture {
	w := &fixture{t: t, observation: observation{nodes: map[string]api.Node{}, disks: map[string]api.Disk{}}}
	for _, n := range []string{"node-1", "node-2", "node-3"} {
		w.nodes[n] = api.Node{Meta: api.Meta{ID: n, Name: n}}
	}
	w.cluster = &api.CephCluster{Spec: api.CephClusterSpec{Enabled: true}}
	w.cluster.Assignment = api.CephClusterAssignment{Fsid: "f", Mons: []api.NodeID{"node-1", "node-2", "node-3"}, Mgrs: []api.NodeID{"node-1"}}
	return w
}

func (w *fixture) decide() *fixture {
	w.t.Helper()
	f, err := decide(w.f, w.observation, source{
		keys:           func() (deploy.Keys, error) { return deploy.Keys{Mon: "m"}, nil },
		uuid:           func() string { w.generated++; return fmt.Sprintf("uuid-%d", w.generated) },
		osdKey:         func(uuid string) (string, error) { return "sealed for " + uuid, nil },
		storageNetwork: w.level,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.f = f
	return w
}

// settled decides until nothing changes any more.
func (w *fixture) settled() *fixture {
	w.t.Helper()
	for range 10 {
		was := w.f
		if w.decide(); reflect.DeepEqual(was, w.f) {
			return w
		}
	}
	w.t.Fatalf("the Bootstrap still changes after 10 decisions: %+v", w.f)
	return w
}

func (w *fixture) disk(id, node string, use api.DiskUse, state api.DiskState) *fixture {
	d := w.disks[id]
	d.Meta.ID, d.Spec.Use, d.Status.Node, d.Status.State = id, use, api.NodeID(node), state
	d.Meta.Generation++
	d.Status.Osd = -1
	w.disks[id] = d
	return w
}

// report sets the disk's state as reported by a node that has seen the latest decision
// about it.
func (w *fixture) report(id string, state api.DiskState) *fixture {
	d := w.disks[id]
	d.Status.State, d.Status.ObservedGeneration = state, d.Meta.Generation
	w.disks[id] = d
	return w
}

// mons sets a survey from monitors that know these OSDs.
func (w *fixture) mons(osds ...deploy.OSDState) *fixture {
	w.survey = &deploy.Survey{Cluster: deploy.Cluster{OSDs: osds}}
	return w
}

func (w *fixture) osds() string {
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

func (w *fixture) want(osds string) *fixture {
	w.t.Helper()
	if got := w.settled().osds(); got != osds {
		w.t.Errorf("OSDs = %q, want %q", got, osds)
	}
	return w
}

// Nothing is decided without an enabled CephCluster.
func TestNothingWithoutASpec(t *testing.T) {
	w := newFixture(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
	for name, c := range map[string]*api.CephCluster{"none": nil, "off": {Assignment: w.cluster.Assignment}, "not planned": {Spec: w.cluster.Spec}} {
		w.cluster = c
		if w.decide(); !reflect.DeepEqual(w.f, Bootstrap{}) {
			t.Errorf("Bootstrap with CephCluster %q = %+v, want none", name, w.f)
		}
	}
}

// TestEncryptedDisks checks that new OSDs get a key if the cluster wants that, that an OSD
// keeps its encryption whatever the setting, and that its key stays until its disk was
// erased.
func TestEncryptedDisks(t *testing.T) {
	w := newFixture(t)
	keys := func(want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for _, o := range w.settled().f.OSDs {
			got[string(o.Disk)] = o.Key
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("keys = %v, want %v", got, want)
		}
	}
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
	keys(map[string]string{"disk-a": ""})
	w.cluster.Spec.EncryptDisks = true
	w.disk("disk-b", "node-2", api.DiskCeph, api.DiskFree)
	keys(map[string]string{"disk-a": "", "disk-b": "sealed for uuid-2"})
	w.cluster.Spec.EncryptDisks = false
	w.disk("disk-c", "node-3", api.DiskCeph, api.DiskFree)
	all := map[string]string{"disk-a": "", "disk-b": "sealed for uuid-2", "disk-c": ""}
	keys(all)
	w.mons(deploy.OSDState{ID: 0, UUID: "uuid-1", Up: true}, deploy.OSDState{ID: 1, UUID: "uuid-2", Up: true}, deploy.OSDState{ID: 2, UUID: "uuid-3", Up: true})
	w.disk("disk-b", "node-2", "", api.DiskReady)
	keys(all) // while its data is moved
	w.mons()  // purged
	w.report("disk-b", api.DiskDraining)
	keys(all) // while it is erased
	w.report("disk-b", api.DiskFree)
	keys(map[string]string{"disk-a": "", "disk-c": ""})
	w.cluster.Spec.EncryptDisks = true
	w.disk("disk-b", "node-2", api.DiskCeph, api.DiskFree)
	keys(map[string]string{"disk-a": "", "disk-b": "sealed for uuid-4", "disk-c": ""})
}

// TestNoDiskWithoutKey checks that a disk is not added in plain if there is no key for it.
func TestNoDiskWithoutKey(t *testing.T) {
	w := newFixture(t)
	w.cluster.Spec.EncryptDisks = true
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
	_, err := decide(w.f, w.observation, source{
		keys: func() (deploy.Keys, error) { return deploy.Keys{}, nil }, uuid: func() string { return "u" },
		osdKey: func(string) (string, error) { return "", errors.New("no ring") },
	})
	if err == nil || !strings.Contains(err.Error(), "no ring") {
		t.Errorf("decide without a key = %v, want its error", err)
	}
}

func TestLifeOfADisk(t *testing.T) {
	w := newFixture(t)
	w.disk("disk-a", "node-1", "", api.DiskFree).want("")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).want("disk-a=uuid-1")
	w.mons(deploy.OSDState{ID: 0, UUID: "uuid-1", Up: true, In: true}).want("disk-a=uuid-1+taken")
	if !w.f.Exists {
		t.Error("Bootstrap.Exists is false after there was a quorum, want true")
	}
	w.disk("disk-a", "node-1", "", api.DiskReady).want("disk-a=uuid-1+taken+leaving")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskDraining).want("disk-a=uuid-1+taken") // the removal was reverted
	w.disk("disk-a", "node-1", "", api.DiskReady).want("disk-a=uuid-1+taken+leaving")
	w.mons() // purged
	w.want("disk-a=uuid-1+taken+leaving")
	w.disk("disk-a", "node-1", "", api.DiskFree).want("disk-a=uuid-1+taken+leaving") // reported before the decision
	w.report("disk-a", api.DiskDraining).want("disk-a=uuid-1+taken+leaving")
	w.report("disk-a", api.DiskFree).want("")
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).want("disk-a=uuid-2") // a new UUID
}

func TestDisksThatAreNotTaken(t *testing.T) {
	w := newFixture(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskInUse)
	w.disk("disk-b", "node-1", api.DiskCeph, api.DiskFailed)
	w.disk("disk-c", "node-9", api.DiskCeph, api.DiskFree) // its node is not a member
	w.want("")
	d := w.disks["disk-a"]
	d.Spec.Wipe = true
	w.disks["disk-a"] = d
	w.want("disk-a=uuid-1+wipe")
	w.mons(deploy.OSDState{UUID: "uuid-1", Up: true})
	w.want("disk-a=uuid-1+taken+wipe")
}

// The OSD of a removed node's disk is removed from the cluster and from the Bootstrap.
func TestNodeIsGone(t *testing.T) {
	w := newFixture(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).mons(deploy.OSDState{UUID: "uuid-1", Up: true, In: true}).settled()
	delete(w.disks, "disk-a")
	w.want("disk-a=uuid-1+taken+leaving")
	w.survey = nil // no monitor responds
	w.want("disk-a=uuid-1+taken+leaving")
	w.mons().want("")
}

// Until there is a quorum the same monitor founds the cluster, even if their order
// changes.
func TestOneFounds(t *testing.T) {
	w := newFixture(t).settled()
	w.cluster.Assignment.Mons = []api.NodeID{"node-0", "node-1", "node-2"}
	if w.settled(); w.f.Mons[0] != "node-1" || len(w.f.Mons) != 3 {
		t.Errorf("monitors before the quorum = %v, want 3 with node-1 first", w.f.Mons)
	}
	w.mons().settled()
	if w.f.Mons[0] != "node-0" {
		t.Errorf("monitors after the quorum = %v, want node-0 first", w.f.Mons)
	}
}

// The cluster is dismantled once it is disabled and empty, and not earlier.
func TestTakenDown(t *testing.T) {
	w := newFixture(t)
	w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).mons(deploy.OSDState{UUID: "uuid-1", Up: true, In: true}).settled()
	was := w.f.Incarnation()
	w.cluster.Spec.Enabled = false
	w.disk("disk-a", "node-1", "", api.DiskReady)
	for _, images := range []map[string]int{nil, {Pool: 2}} {
		if w.images = images; w.settled().f.Dismantle {
			t.Errorf("Dismantle with images %v = true, want false", images)
		}
	}
	w.images = map[string]int{Pool: 0}
	if w.settled(); !w.f.Dismantle || w.f.FSID == "" {
		t.Errorf("disabled Bootstrap without images = %+v, want Dismantle and an FSID", w.f)
	}
	w.mons().report("disk-a", api.DiskFree).settled()
	if want := (Bootstrap{Generation: 1, Retired: []Incarnation{was}}); !reflect.DeepEqual(w.f, want) {
		t.Errorf("Bootstrap after the last OSD was removed = %+v, want %+v", w.f, want)
	}
	w.survey, w.cluster.Spec.Enabled = nil, true
	if w.settled(); w.f.Generation != 2 || w.f.Exists || w.f.Incarnation() == was {
		t.Errorf("Bootstrap of the second cluster = %+v, want generation 2 that does not exist yet", w.f)
	}
}

func TestExplain(t *testing.T) {
	pool := deploy.Survey{Health: deploy.Health{Level: deploy.OK, Summary: "all data is there"}}
	pool.Cluster.Pools = []deploy.PoolState{{Name: Pool, Enabled: true}}
	for _, c := range []struct {
		name    string
		with    func(w *fixture)
		phase   api.CephPhase
		health  api.CephHealth
		summary string
		next    string
	}{
		{"no monitor yet", func(*fixture) {}, api.CephDeploying, "", "first monitor", ""},
		{"it cannot be made", func(w *fixture) {
			n := w.nodes["node-1"]
			n.Status.Conditions = []api.Condition{{Type: condCeph, Message: "ceph-mon is not installed"}}
			w.nodes["node-1"] = n
		}, api.CephDeploying, "", "first monitor", "check node node-1: ceph-mon is not installed"},
		{"no disk", func(w *fixture) { w.survey = &deploy.Survey{Health: pool.Health} }, api.CephDeploying, api.CephWarning, "no disks", "basalt disk use"},
		{"too few nodes", func(w *fixture) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree).disk("disk-b", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &deploy.Survey{Health: pool.Health}
		}, api.CephDeploying, api.CephWarning, "it has 1 nodes with disks, want at least 3", "add more"},
		{"ready", func(w *fixture) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.survey = &pool
			w.survey.Cluster.OSDs = []deploy.OSDState{{UUID: "uuid-1", Up: true, In: true}, {UUID: "uuid-2", Up: true, In: true}, {UUID: "uuid-3", Up: true, In: true}}
		}, api.CephReady, api.CephOK, "all data is there", ""},
		{"too few nodes with the class", func(w *fixture) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.cluster.Spec.DeviceClass = api.ClassSSD
			w.survey = &deploy.Survey{Health: pool.Health}
			w.survey.Cluster.OSDs = []deploy.OSDState{{UUID: "uuid-1", Class: "ssd"}, {UUID: "uuid-2", Class: "hdd"}, {UUID: "uuid-3", Class: "ssd"}}
		}, api.CephDeploying, api.CephWarning, "it has 2 nodes with disks of device class ssd, want at least 3", "add more"},
		{"another pool with too few nodes", func(w *fixture) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.cluster.Spec.Pools = []api.CephPool{{DeviceClass: api.ClassNVMe, Replicas: 2}}
			w.survey = &deploy.Survey{Health: pool.Health}
			w.survey.Cluster.Pools = pool.Cluster.Pools
			w.survey.Cluster.OSDs = []deploy.OSDState{{UUID: "uuid-1", Up: true, In: true, Class: "nvme"}, {UUID: "uuid-2", Class: "hdd"}, {UUID: "uuid-3", Class: "hdd"}}
		}, api.CephReady, api.CephWarning, "pool ceph-nvme has 1 nodes with disks of device class nvme, want at least 2", "--device-class"},
		{"nowhere to go", func(w *fixture) {
			for _, n := range []string{"1", "2", "3"} {
				w.disk("disk-"+n, "node-"+n, api.DiskCeph, api.DiskFree)
			}
			w.survey = &pool
			w.settled().disk("disk-1", "node-1", "", api.DiskReady)
		}, api.CephReady, api.CephWarning, "it has 2 ", "does not fit"},
		{"nobody answers", func(w *fixture) {
			w.survey = &pool
			w.settled()
			w.survey, w.cluster.Status.Phase = nil, api.CephReady
		}, api.CephReady, api.CephError, "monitors are not reachable", "voting nodes"},
		{"switched off with volumes", func(w *fixture) {
			w.disk("disk-a", "node-1", api.DiskCeph, api.DiskFree)
			w.survey = &pool
			w.settled()
			w.cluster.Spec.Enabled, w.images = false, map[string]int{Pool: 2}
		}, api.CephDeploying, api.CephWarning, "contains 2 volumes and images", "delete"},
		{"switched off", func(w *fixture) { w.cluster.Spec.Enabled = false }, api.CephPending, "", "not enabled", ""},
	} {
		w := newFixture(t)
		c.with(w)
		w.settled()
		st := explain(w.f, w.observation, errors.New("timed out"))
		if st.Phase != c.phase || st.Health != c.health || !strings.Contains(st.Summary, c.summary) || !strings.Contains(st.Next, c.next) || c.next == "" && st.Next != "" {
			t.Errorf("%s: status = %+v, want phase %q, health %q, summary with %q, next with %q", c.name, st, c.phase, c.health, c.summary, c.next)
		}
	}
}

// onStorage gives nodes addresses on the storage network.
func (w *fixture) onStorage(addresses map[string]string) *fixture {
	for id, a := range addresses {
		n := w.nodes[id]
		n.Meta.ID, n.Meta.Name, n.Status.StorageAddress = id, id, a
		w.nodes[id] = n
	}
	return w
}

// TestStorageNetwork checks that a new cluster uses the storage network if all nodes have
// it, and that its monitors keep their addresses; an existing cluster stays where it is.
func TestStorageNetwork(t *testing.T) {
	all := map[string]string{"node-1": "198.51.100.1", "node-2": "198.51.100.2", "node-3": "198.51.100.3"}
	addresses := func(f Bootstrap) string { return fmt.Sprint(f.Mons, f.Addresses) }
	w := newFixture(t).onStorage(all)
	w.level = true
	want := "[node-1 node-2 node-3] map[node-1:198.51.100.1 node-2:198.51.100.2 node-3:198.51.100.3]"
	if got := addresses(w.settled().f); got != want {
		t.Errorf("monitors = %s, want %s", got, want)
	}
	w.onStorage(map[string]string{"node-1": "", "node-2": "198.51.100.9", "node-3": ""})
	if got := addresses(w.settled().f); got != want {
		t.Errorf("monitors after their nodes' addresses have changed = %s, want %s", got, want)
	}
	// A new monitor waits until its node has an address.
	w.nodes["node-4"] = api.Node{Meta: api.Meta{ID: "node-4"}}
	w.cluster.Assignment.Mons = []api.NodeID{"node-1", "node-2", "node-4"}
	if got, want := addresses(w.settled().f), "[node-1 node-2] map[node-1:198.51.100.1 node-2:198.51.100.2]"; got != want {
		t.Errorf("monitors with a node without an address = %s, want %s", got, want)
	}
	w.onStorage(map[string]string{"node-4": "198.51.100.4"})
	if got, want := addresses(w.settled().f), "[node-1 node-2 node-4] map[node-1:198.51.100.1 node-2:198.51.100.2 node-4:198.51.100.4]"; got != want {
		t.Errorf("monitors with a new one = %s, want %s", got, want)
	}

	for name, x := range map[string]struct {
		addresses map[string]string
		level     bool
	}{
		"an older member":            {all, false},
		"a node without the network": {map[string]string{"node-1": "198.51.100.1", "node-2": "198.51.100.2"}, true},
		"two families":               {map[string]string{"node-1": "198.51.100.1", "node-2": "198.51.100.2", "node-3": "2001:db8::3"}, true},
		"no address":                 {map[string]string{"node-1": "198.51.100.1", "node-2": "198.51.100.2", "node-3": "fe80::1%eno1"}, true},
	} {
		w := newFixture(t).onStorage(x.addresses)
		w.level = x.level
		if w.settled(); w.f.Addresses != nil || len(w.f.Mons) != 3 {
			t.Errorf("%s: monitors = %s, want three on the main path", name, addresses(w.f))
		}
		if w.level = true; len(w.onStorage(all).settled().f.Addresses) > 0 {
			t.Errorf("%s: an existing cluster moved to the storage network, want it to stay", name)
		}
	}
}
