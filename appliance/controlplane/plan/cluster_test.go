package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

func decode[T any](t *testing.T, o api.Object) T {
	t.Helper()
	v, err := api.Decode[T](o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// three returns three nodes that are monitored and share a pool; n1 leads.
func three() *State {
	s := cluster().node("n1", 4*gib).node("n2", 4*gib).node("n3", 4*gib)
	s.Health, s.Self = map[string]Health{}, "n1"
	for id, n := range s.Nodes {
		n.Status.Pools = []api.StoragePool{{Name: "local"}, {Name: "shared", ID: "p", Shared: true}}
		s.Nodes[id] = n
	}
	return s
}

func (s *State) spec(id string, change func(*api.InstanceSpec)) *State {
	in := s.Instances[id]
	change(&in.Spec)
	s.Instances[id] = in
	v := s.Volumes["vol-"+id]
	v.Spec.Pool = in.Spec.StoragePool
	s.Volumes["vol-"+id] = v
	return s
}

func (s *State) running() {
	for id, in := range s.Instances {
		in.Status.Phase, in.Status.Node, in.Status.Epoch = api.InstanceRunning, in.Assignment.Node, in.Assignment.Epoch
		s.Instances[id] = in
	}
}

// on places the instances without a node on a node.
func (s *State) on(t *testing.T, node string) {
	t.Helper()
	for id, n := range s.Nodes {
		n.Spec.Unschedulable = id != node
		s.Nodes[id] = n
	}
	settle(t, s)
	for id, n := range s.Nodes {
		n.Spec.Unschedulable = false
		s.Nodes[id] = n
	}
	s.running()
}

func (s *State) fence(id string) {
	s.Health[id] = Health{Suspect: true, Fenced: true, Why: "n1 and n3 do not reach it"}
}

func TestFailover(t *testing.T) {
	s := three()
	for _, id := range []string{"low", "high", "gpu", "ephemeral", "local"} {
		vram := int64(0)
		if id == "gpu" {
			vram = gib
		}
		s.instance(id, "flv-1", vram, 0)
	}
	s.spec("high", func(i *api.InstanceSpec) { i.Priority = 90 })
	s.spec("gpu", func(i *api.InstanceSpec) { i.Priority = 80 })
	s.spec("ephemeral", func(i *api.InstanceSpec) { i.Ephemeral, i.StoragePool, i.Priority = true, "local", 70 })
	s.spec("local", func(i *api.InstanceSpec) { i.StoragePool = "local" })
	s.gpu("g2", "n2", 8*gib).gpu("g3", "n3", 8*gib)
	n2 := s.Nodes["n2"]
	n2.Status.MemoryBytes, n2.Status.Vcpus = 8*gib, 16
	s.Nodes["n2"] = n2
	s.on(t, "n2")
	for _, id := range []string{"n1", "n3"} { // room for three of the four that are movable
		n := s.Nodes[id]
		n.Status.MemoryBytes = gib
		if id == "n3" {
			n.Status.MemoryBytes = 2*gib + placement.WorkersMemory // and for those of one vGPU
		}
		s.Nodes[id] = n
	}

	s.Health["n2"] = Health{Suspect: true, Why: "not heard of"}
	settle(t, s)
	if st := s.Nodes["n2"].Assignment; st.State != api.NodeSuspect || st.Epoch != 0 {
		t.Fatalf("assignment of the suspected node = %+v, want state Suspect and epoch 0", st)
	}
	for id, in := range s.Instances {
		if in.Assignment.Node != "n2" {
			t.Errorf("assignment of %s while n2 is only suspected = %+v, want node n2", id, in.Assignment)
		}
	}
	s.fence("n2")
	settle(t, s)
	if st := s.Nodes["n2"].Assignment; st.State != api.NodeLost || st.Epoch != 1 {
		t.Fatalf("assignment of the fenced node = %+v, want state Lost and epoch 1", st)
	}
	at := func(id string) api.InstanceAssignment { return s.Instances[id].Assignment }
	for _, id := range []string{"high", "gpu", "ephemeral"} {
		if a := at(id); a.Node == "n2" || a.Node == "" || a.Epoch != 1 {
			t.Errorf("assignment of %s = %+v, want another node than n2, and epoch 1", id, a)
		}
	}
	if a := at("gpu"); a.Node != "n3" || a.Gpu != "g3" {
		t.Errorf("assignment of gpu = %+v, want node n3 and GPU g3", a)
	}
	if a := at("low"); a.Node != "" || !strings.HasPrefix(a.Reason, "waiting for capacity: no node fits") {
		t.Errorf("assignment of low = %+v, want none, for lack of capacity", a)
	}
	if a := at("local"); a.Node != "n2" || !a.NodeLost || !strings.Contains(a.Reason, "its disk is stored on node n2") {
		t.Errorf("assignment of local = %+v, want node n2, lost, with the reason", a)
	}
	if v := s.Volumes["vol-high"].Assignment; v.Node != at("high").Node || v.Recreate != 0 || v.Pool != "shared" || v.Epoch != 1 {
		t.Errorf("assignment of the shared volume = %+v, want its instance's node in pool shared, not created again", v)
	}
	if v := s.Volumes["vol-ephemeral"].Assignment; v.Node != at("ephemeral").Node || v.Recreate != 1 {
		t.Errorf("assignment of the ephemeral volume = %+v, want its instance's node, created again once", v)
	}
	if v := s.Volumes["vol-local"].Assignment; v.Node != "n2" {
		t.Errorf("assignment of the local volume = %+v, want node n2", v)
	}

	// The node returns: it first releases what is not its own, then it is schedulable.
	delete(s.Health, "n2")
	settle(t, s)
	if st := s.Nodes["n2"].Assignment; st.State != api.NodeLost {
		t.Fatalf("assignment of the returned node = %+v, want state Lost until it has released", st)
	}
	n2 = s.Nodes["n2"]
	n2.Status.ObservedEpoch = 1
	s.Nodes["n2"] = n2
	settle(t, s)
	if st := s.Nodes["n2"].Assignment; st.State != api.NodeReady || st.Epoch != 1 {
		t.Fatalf("assignment of the returned node = %+v, want state Ready and epoch 1", st)
	}
	if a := at("local"); a.Node != "n2" || a.NodeLost || a.Reason != "" || a.Epoch != 0 {
		t.Errorf("assignment of local = %+v, want node n2, not lost, epoch 0 and no reason", a)
	}
	if a := at("low"); a.Node != "n2" || a.Epoch != 1 {
		t.Errorf("assignment of low = %+v, want node n2 and epoch 1", a)
	}
}

// TestFailoverWithTPM checks that an instance with a TPM is started on another node only
// if the TPM's state is stored beside its root volume, and that the reason names the TPM
// otherwise.
func TestFailoverWithTPM(t *testing.T) {
	s := three()
	for id, n := range s.Nodes {
		n.Status.Machines.Firmware = []string{api.AbilityUEFI, api.AbilityTPM}
		s.Nodes[id] = n
	}
	for _, id := range []string{"stored", "bound"} {
		s.instance(id, "flv-1", 0, 0).spec(id, func(i *api.InstanceSpec) { i.Firmware, i.TPM = api.FirmwareUEFI, true })
	}
	s.on(t, "n2")
	in := s.Instances["stored"]
	in.Status.StateVolume = in.Assignment.RootVolume
	s.Instances["stored"] = in
	s.Health["n2"] = Health{Suspect: true, Why: "not heard of"}
	settle(t, s)
	s.fence("n2")
	settle(t, s)
	if a := s.Instances["stored"].Assignment; a.Node == "n2" || a.Node == "" || a.Epoch != 1 {
		t.Errorf("assignment of the instance whose TPM is stored = %+v, want another node than n2, and epoch 1", a)
	}
	if a := s.Instances["bound"].Assignment; a.Node != "n2" || !a.NodeLost || !strings.Contains(a.Reason, "the state of its TPM is stored on node n2") {
		t.Errorf("assignment of the instance whose TPM is on its node = %+v, want node n2, lost, with the reason", a)
	}
}

func TestARemovedNodesInstances(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0).instance("b", "flv-1", 0, 0)
	s.spec("b", func(i *api.InstanceSpec) { i.StoragePool = "local" })
	s.on(t, "n2")
	delete(s.Nodes, "n2")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node == "n2" || a.Node == "" {
		t.Errorf("assignment of a after its node was removed = %+v, want another node", a)
	}
	if b := s.Instances["b"].Assignment; b.Node != "n2" || !b.NodeLost {
		t.Errorf("assignment of b after its node was removed = %+v, want node n2, lost", b)
	}
	in := s.Instances["b"]
	in.Meta.DeletedAt = &now
	s.Instances["b"] = in
	settle(t, s)
	if _, there := s.Instances["b"]; there {
		t.Error("deleted instance b still exists, want it removed")
	}
	if _, there := s.Volumes["vol-b"]; there {
		t.Error("deleted volume vol-b still exists, want it removed")
	}
}

// An operator who declares a node off ends its lease, not its instances: they start on
// other nodes when they have certainly ended.
func TestNodeConfirmedOff(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	n := s.Nodes["n2"]
	n.Spec.Off = true
	s.Nodes["n2"] = n
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" {
		t.Fatalf("assignment of a before the fence = %+v, want node n2", a)
	}
	s.fence("n2")
	settle(t, s)
	if _, there := s.Nodes["n2"]; there {
		t.Error("node n2 still exists after the fence, want it removed")
	}
	if a := s.Instances["a"].Assignment; a.Node == "n2" || a.Node == "" {
		t.Errorf("assignment of a after the fence = %+v, want another node than n2", a)
	}
}

func TestVoters(t *testing.T) {
	voters := func(s *State) string {
		settle(t, s)
		var v []string
		for _, n := range objects.Sorted(s.Nodes) {
			if n.Assignment.Voter {
				v = append(v, n.Meta.ID)
			}
		}
		return strings.Join(v, " ")
	}
	s := cluster().node("n2", gib)
	s.Health, s.Self = map[string]Health{}, "n2"
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() {}, "n2"},
		{func() { s.node("n1", gib) }, "n2"}, // a second voter would only be another one that must not fail
		{func() { s.node("n3", gib) }, "n1 n2 n3"},
		{func() { s.node("n0", gib) }, "n1 n2 n3"},
		{func() { s.fence("n3") }, "n0 n1 n2"},
		{func() { s.fence("n0") }, "n0 n1 n2"}, // no other node can replace it
		{func() { delete(s.Nodes, "n3") }, "n0 n1 n2"},
		{func() { delete(s.Nodes, "n0") }, "n2"},
	} {
		c.change()
		if got := voters(s); got != c.want {
			t.Errorf("voters %q, want %q", got, c.want)
		}
	}
}

func TestDrain(t *testing.T) {
	s := three().instance("live", "flv-1", 0, 0).instance("gpu", "flv-1", gib, 0).instance("stuck", "flv-1", gib, 0)
	s.spec("stuck", func(i *api.InstanceSpec) { i.StoragePool = "local" })
	s.gpu("g2", "n2", 8*gib).gpu("g3", "n3", 8*gib)
	s.on(t, "n2")
	n2 := s.Nodes["n2"]
	n2.Spec.Drain = true
	s.Nodes["n2"] = n2
	settle(t, s)
	if n := s.Nodes["n2"].Assignment; n.State != api.NodeDraining || !strings.HasPrefix(n.Reason, "3 to move: ") {
		t.Errorf("assignment of n2 = %+v, want state Draining with 3 instances to move", n)
	}
	if len(s.Migrations) != 1 {
		t.Fatalf("migrations = %d, want 1", len(s.Migrations))
	}
	if a := s.Instances["gpu"].Assignment; !a.Release || a.Node != "n2" {
		t.Errorf("assignment of gpu = %+v, want it to be released by n2", a)
	}
	if a := s.Instances["stuck"].Assignment; a.Release || a.Node != "n2" {
		t.Errorf("assignment of stuck = %+v, want node n2 without a release", a)
	}
	// Both operations complete.
	in := s.Instances["gpu"]
	in.Status.Released, in.Status.Phase = true, api.InstanceStopped
	s.Instances["gpu"] = in
	for id, m := range s.Migrations {
		m.Status.Phase = api.MigrationSucceeded
		s.Migrations[id] = m
	}
	settle(t, s)
	if a := s.Instances["gpu"].Assignment; a.Node != "n3" || a.Release || a.Epoch != 1 {
		t.Errorf("assignment of gpu = %+v, want node n3, epoch 1, no release", a)
	}
	if a := s.Instances["live"].Assignment; a.Node == "n2" || a.MigrateTo != "" || a.Epoch != 1 {
		t.Errorf("assignment of live = %+v, want another node than n2, epoch 1", a)
	}
	for _, m := range s.Migrations {
		if m.Assignment.Phase != api.MigrationSucceeded {
			t.Errorf("assignment of the migration = %+v, want phase Succeeded", m.Assignment)
		}
	}
	if n := s.Nodes["n2"].Assignment; n.State != api.NodeDraining || !strings.Contains(n.Reason, "stuck: its disk is stored on this node and it has a virtual GPU") {
		t.Errorf("assignment of n2 = %+v, want state Draining because of stuck", n)
	}
	delete(s.Instances, "stuck")
	settle(t, s)
	if n := s.Nodes["n2"].Assignment; n.State != api.NodeDrained {
		t.Errorf("assignment of n2 = %+v, want state Drained", n)
	}
}

// A migration ends in the same way if only one command of each plan is applied, as a
// leader may fail after any.
func TestMigrationOneCommandAtATime(t *testing.T) {
	type end struct {
		name  string
		event func(s *State)
		phase api.MigrationPhase
		nodes []api.NodeID
	}
	for _, c := range []end{
		{"succeeds", func(s *State) { s.reportMigration("m", api.MigrationSucceeded) }, api.MigrationSucceeded, []api.NodeID{"n3"}},
		{"fails", func(s *State) { s.reportMigration("m", api.MigrationFailed) }, api.MigrationFailed, []api.NodeID{"n2"}},
		{"aborted", func(s *State) { s.reportMigration("m", api.MigrationAborted) }, api.MigrationAborted, []api.NodeID{"n2"}},
		{"source lost", func(s *State) { s.fence("n2") }, api.MigrationFailed, []api.NodeID{"n1", "n3"}},
		{"target lost", func(s *State) { s.fence("n3") }, api.MigrationFailed, []api.NodeID{"n2"}},
		{"instance deleted", func(s *State) {
			in := s.Instances["a"]
			in.Meta.DeletedAt = &now
			s.Instances["a"] = in
		}, api.MigrationFailed, []api.NodeID{"n2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three().instance("a", "flv-1", 0, 0)
			s.on(t, "n2")
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
			step := func() {
				for range 50 {
					cmds := next(t, s, now)
					if len(cmds) == 0 {
						return
					}
					commit(t, s, cmds[len(cmds)-1])
				}
				t.Fatal("the plan still has commands after 50 rounds, want none")
			}
			step()
			if a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment; a.Node != "n2" || a.MigrateTo != "n3" || m.Phase != api.MigrationPreparing {
				t.Fatalf("assignment of a = %+v, of the migration = %+v; want the move from n2 to n3 prepared", a, m)
			}
			c.event(s)
			step()
			a, m := s.Instances["a"].Assignment, s.Migrations["m"].Assignment
			if !slices.Contains(c.nodes, a.Node) || c.name != "instance deleted" && a.MigrateTo != "" || m.Phase != c.phase {
				t.Errorf("assignment of a = %+v, of the migration = %+v; want one of nodes %v, migrateTo cleared, and phase %s", a, m, c.nodes, c.phase)
			}
		})
	}
}

func (s *State) reportMigration(id string, p api.MigrationPhase) {
	m := s.Migrations[id]
	m.Status.Phase = p
	s.Migrations[id] = m
}

func TestMigrationsThatCannotBegin(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *State)
		want   string
	}{
		{"GPU", func(s *State) { s.spec("a", func(i *api.InstanceSpec) { i.Vgpu = &api.VGPUSpec{VramBytes: gib} }) }, "virtual GPU"},
		{"stopped", func(s *State) {
			in := s.Instances["a"]
			in.Status.Phase = api.InstanceStopped
			s.Instances["a"] = in
		}, "not running"},
		{"no room", func(s *State) {
			n := s.Nodes["n3"]
			n.Status.MemoryBytes = gib / 2
			s.Nodes["n3"] = n
		}, "512 MiB"},
		{"lost", func(s *State) { s.fence("n3") }, "is lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three().instance("a", "flv-1", 0, 0)
			s.on(t, "n2")
			c.change(s)
			settle(t, s)
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
			settle(t, s)
			if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, c.want) {
				t.Errorf("assignment of the migration = %+v, want phase Failed with %q", m, c.want)
			}
			if a := s.Instances["a"].Assignment; a.Node != "n2" || a.MigrateTo != "" {
				t.Errorf("assignment of a = %+v, want node n2 and no migrateTo", a)
			}
		})
	}
}

func TestAnImageIsFetchedByOne(t *testing.T) {
	s := three()
	s.Images["img-2"] = api.Image{Meta: api.Meta{ID: "img-2"}, Spec: api.ImageSpec{URL: "https://x"}}
	settle(t, s)
	was := s.Images["img-2"].Assignment.Node
	if was == "" {
		t.Fatal("node that imports img-2 is empty, want one")
	}
	s.fence(string(was))
	settle(t, s)
	if now := s.Images["img-2"].Assignment.Node; now == was || now == "" {
		t.Errorf("node that imports img-2 after %s was lost = %q, want another one", was, now)
	}
}

// A node without a working hypervisor keeps its instances, which leases and fences
// treat as before, and gets nothing new: no instance, no volume, no migration.
func TestNodeWithoutHypervisor(t *testing.T) {
	s := three().instance("old", "flv-1", 0, 0)
	s.on(t, "n2")
	for id, n := range s.Nodes {
		n.Status.Conditions = []api.Condition{{Type: api.ConditionHypervisor, Status: id == "n3", Message: "libvirtd does not answer"}}
		s.Nodes[id] = n
	}
	s.instance("new", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["old"].Assignment; a.Node != "n2" || a.Release || a.Epoch != 0 {
		t.Errorf("assignment of old = %+v, want node n2, epoch 0", a)
	}
	if a := s.Instances["new"].Assignment; a.Node != "n3" {
		t.Errorf("assignment of new = %+v, want node n3", a)
	}
	n := s.Nodes["n3"]
	n.Status.Conditions[0].Status = false
	s.instance("waits", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["waits"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "has no working hypervisor") {
		t.Errorf("assignment of waits = %+v, want none, for lack of a hypervisor", a)
	}
}

// A node that shuts down keeps its instances, which start again with it, and gets
// nothing new.
func TestNodeThatShutsDown(t *testing.T) {
	s := three().instance("old", "flv-1", 0, 0)
	s.on(t, "n2")
	leave := func(id string) {
		n := s.Nodes[id]
		n.Status.ShuttingDown = true
		s.Nodes[id] = n
	}
	leave("n1")
	leave("n2")
	s.instance("new", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["old"].Assignment; a.Node != "n2" || a.Release || a.Epoch != 0 {
		t.Errorf("assignment of old = %+v, want node n2, epoch 0", a)
	}
	if a := s.Instances["new"].Assignment; a.Node != "n3" {
		t.Errorf("assignment of new = %+v, want node n3", a)
	}
	leave("n3")
	s.instance("waits", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["waits"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "is shutting down") {
		t.Errorf("assignment of waits = %+v, want none, as all nodes shut down", a)
	}
}

// A node whose guests run without KVM, and that refuses emulation, keeps its instances,
// which may be resized, and gets nothing new: no instance, no volume. A node of a
// version that does not report it accepts instances as before.
func TestNodeWithoutKVM(t *testing.T) {
	s := three().instance("old", "flv-1", 0, 0)
	s.on(t, "n2")
	set := func(id, how string, refused bool) {
		n := s.Nodes[id]
		n.Status.Accelerator, n.Status.EmulationRefused = how, refused
		s.Nodes[id] = n
	}
	set("n1", "tcg", true)
	set("n2", "tcg", true)
	set("n3", "kvm", true)
	s.instance("new", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["old"].Assignment; a.Node != "n2" || a.Release || a.Epoch != 0 {
		t.Errorf("assignment of old = %+v, want node n2, epoch 0", a)
	}
	if a := s.Instances["new"].Assignment; a.Node != "n3" {
		t.Errorf("assignment of new = %+v, want node n3", a)
	}
	set("n3", "tcg", true)
	s.instance("waits", "flv-1", 0, 0)
	s.Volumes["data"] = api.Volume{Meta: api.Meta{ID: "data", Name: "data", Finalizers: []string{"agent"}}, Spec: api.VolumeSpec{SizeBytes: 1 << 30}}
	old := s.Instances["old"]
	f := s.Flavors["flv-1"]
	f.Meta.ID, f.Spec.Vcpus = "flv-3", 3
	s.Flavors["flv-3"] = f
	old.Spec.Flavor, old.Status.Phase, old.Meta.Generation = "flv-3", api.InstanceStopped, old.Meta.Generation+1
	s.Instances["old"] = old
	settle(t, s)
	if a := s.Instances["waits"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "node n1 has no KVM; node n2 has no KVM; node n3 has no KVM") {
		t.Errorf("assignment of waits = %+v, want none, for lack of KVM", a)
	}
	if a := s.Volumes["data"].Assignment; a.Node != "" || a.Reason != "waiting for a node with KVM" {
		t.Errorf("assignment of volume data = %+v, want none, for lack of KVM", a)
	}
	if a := s.Instances["old"].Assignment; a.Node != "n2" || a.Vcpus != 3 {
		t.Errorf("assignment of old, resized = %+v, want node n2 with 3 vCPUs", a)
	}
	set("n1", "tcg", false)
	settle(t, s)
	if a := s.Instances["waits"].Assignment; a.Node != "n1" {
		t.Errorf("assignment of waits = %+v, want node n1, which allows emulation", a)
	}
}

// A node that has lost its copy of the cluster's state keeps its instances, and gets
// nothing new: its agent would not receive it.
func TestNodeWithoutStore(t *testing.T) {
	s := three().instance("old", "flv-1", 0, 0)
	s.on(t, "n2")
	for id, n := range s.Nodes {
		n.Status.Conditions = []api.Condition{{Type: api.ConditionStore, Status: id == "n3"}}
		s.Nodes[id] = n
	}
	s.instance("new", "flv-1", 0, 0)
	settle(t, s)
	if a := s.Instances["old"].Assignment; a.Node != "n2" || a.Release {
		t.Errorf("assignment of old = %+v, want node n2 without a release", a)
	}
	if a := s.Instances["new"].Assignment; a.Node != "n3" {
		t.Errorf("assignment of new = %+v, want node n3", a)
	}
}
