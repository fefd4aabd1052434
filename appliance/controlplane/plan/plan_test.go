package plan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const gib = 1 << 30

// emptyState returns a state without objects.
func emptyState() *State { return StateOf(objects.NewSet(Kinds...)) }

// next calls Next, and checks that it does not change the objects, which others share.
func next(t *testing.T, s *State, at time.Time) []api.Command {
	t.Helper()
	before := api.Encode(s)
	cmds := Next(s, at)
	if after := api.Encode(s); !bytes.Equal(before, after) {
		t.Fatalf("planning changed the objects: before %s, after %s", before, after)
	}
	return cmds
}

// cluster returns a state with one flavor, one ready image and one pool.
func cluster() *State {
	s := emptyState()
	s.Flavors["flv-1"] = api.Flavor{Meta: api.Meta{ID: "flv-1", Name: "small"}, Spec: api.FlavorSpec{Vcpus: 2, MemoryBytes: gib}}
	s.Flavors["flv-2"] = api.Flavor{Meta: api.Meta{ID: "flv-2", Name: "huge"}, Spec: api.FlavorSpec{Vcpus: 2, MemoryBytes: 900 * gib}}
	s.Images["img-1"] = api.Image{Meta: api.Meta{ID: "img-1", Name: "debian"}, Status: api.ImageStatus{Phase: api.ImageReady}}
	s.Pools["pool-1"] = api.GPUPool{Meta: api.Meta{ID: "pool-1", Name: "default"}}
	return s
}

// TestMediaBeforePlacement checks that an instance waits for its media, and that one
// without an image, with an empty drive, does not wait for an image.
func TestMediaBeforePlacement(t *testing.T) {
	s := cluster().node("node-1", 64*gib).instance("ins-1", "flv-1", 0, 0)
	s.Images["img-2"] = api.Image{Meta: api.Meta{ID: "img-2", Name: "installer"}, Spec: api.ImageSpec{Format: api.FormatISO}, Status: api.ImageStatus{Phase: api.ImageImporting}}
	in := s.Instances["ins-1"]
	in.Spec.Image, in.Spec.Media = "", []api.ImageID{"", "img-2"}
	s.Instances["ins-1"] = in
	if _, why := ready(s, in); !strings.HasPrefix(why.Text, "image installer is not ready") {
		t.Errorf("an instance whose medium is imported waits for %+v, want image installer", why)
	}
	m := s.Images["img-2"]
	m.Status.Phase = api.ImageReady
	s.Images["img-2"] = m
	if f, why := ready(s, in); why.Text != "" || f.Meta.ID != "flv-1" {
		t.Errorf("an instance with its media waits for %+v, want nothing", why)
	}
	delete(s.Images, "img-2")
	if _, why := ready(s, in); !strings.Contains(why.Text, "does not exist any more") {
		t.Errorf("an instance without its medium waits for %+v, want that it does not exist", why)
	}
}

func (s *State) node(id string, memory int64) *State {
	s.Nodes[id] = api.Node{Meta: api.Meta{ID: id, Name: id}, Status: api.NodeStatus{Vcpus: 8, MemoryBytes: memory, StorageFreeBytes: 100 * gib, SeenAt: now}}
	return s
}

func (s *State) gpu(id string, node api.NodeID, vram int64) *State {
	s.GPUs[id] = api.GPU{Meta: api.Meta{ID: id, Name: id}, Status: api.GPUStatus{Node: node, VramBytes: vram}}
	return s
}

func (s *State) instance(id string, flavor api.FlavorID, vram, share int64) *State {
	in := api.Instance{Meta: api.Meta{ID: id, Name: id, Revision: 7, Generation: 1, Finalizers: []string{"agent"}}, Spec: api.InstanceSpec{Flavor: flavor, Image: "img-1"}}
	if vram > 0 {
		in.Spec.Vgpu = &api.VGPUSpec{VramBytes: vram, SharePercent: share}
	}
	s.Instances[id] = in
	s.Volumes["vol-"+id] = api.Volume{Meta: api.Meta{ID: "vol-" + id, Finalizers: []string{"agent"}}, Spec: api.VolumeSpec{Instance: api.InstanceID(id), Root: true, SizeBytes: s.Flavors[string(flavor)].Spec.RootBytes}}
	return s
}

// settle plans and applies until there are no more commands, and returns those of the
// plan.
func settle(t *testing.T, s *State) (steps []string) {
	t.Helper()
	for round := 0; ; round++ {
		cmds := next(t, s, now)
		if len(cmds) == 0 {
			return steps
		}
		if round > 10 {
			t.Fatalf("the plan does not settle: %v", cmds)
		}
		for _, c := range cmds {
			steps = append(steps, fmt.Sprintf("%d %s %s", c.Op, c.ID, c.Data))
			commit(t, s, c)
		}
	}
}

func commit(t *testing.T, s *State, c api.Command) {
	t.Helper()
	switch {
	case c.Op == api.OpAssign && c.Kind == api.KindInstance:
		in := s.Instances[c.ID]
		o := api.Object{Kind: c.Kind, Assignment: c.Data}
		d, err := api.Decode[api.Instance](o)
		if err != nil {
			t.Fatal(err)
		}
		in.Assignment = d.Assignment
		s.Instances[c.ID] = in
	case c.Op == api.OpAssign && c.Kind == api.KindVolume:
		v := s.Volumes[c.ID]
		d, err := api.Decode[api.Volume](api.Object{Kind: c.Kind, Assignment: c.Data})
		if err != nil {
			t.Fatal(err)
		}
		v.Assignment = d.Assignment
		s.Volumes[c.ID] = v
	case c.Op == api.OpAssign && c.Kind == api.KindNode:
		n := s.Nodes[c.ID]
		n.Assignment = decode[api.Node](t, api.Object{Assignment: c.Data}).Assignment
		s.Nodes[c.ID] = n
	case c.Op == api.OpAssign && c.Kind == api.KindMigration:
		m := s.Migrations[c.ID]
		m.Assignment = decode[api.Migration](t, api.Object{Assignment: c.Data}).Assignment
		s.Migrations[c.ID] = m
	case c.Op == api.OpPutSpec && c.Kind == api.KindMigration:
		m := decode[api.Migration](t, api.Object{Spec: c.Data})
		m.Meta = api.Meta{ID: c.ID, Name: c.Name}
		s.Migrations[c.ID] = m
	case c.Op == api.OpAssign && c.Kind == api.KindSnapshot:
		x := s.Snapshots[c.ID]
		x.Assignment = decode[api.Snapshot](t, api.Object{Assignment: c.Data}).Assignment
		s.Snapshots[c.ID] = x
	case c.Op == api.OpAssign && c.Kind == api.KindImage:
		m := s.Images[c.ID]
		m.Assignment = decode[api.Image](t, api.Object{Assignment: c.Data}).Assignment
		s.Images[c.ID] = m
	case c.Op == api.OpDelete && c.Kind == api.KindNode:
		delete(s.Nodes, c.ID)
	case c.Op == api.OpDelete:
		v := s.Volumes[c.ID]
		v.Meta.DeletedAt = &now
		s.Volumes[c.ID] = v
	case c.Op == api.OpForget && c.Kind == api.KindInstance:
		delete(s.Instances, c.ID)
	case c.Op == api.OpForget && c.Kind == api.KindVolume:
		delete(s.Volumes, c.ID)
	default:
		t.Fatalf("unexpected command %+v", c)
	}
}

func TestPlacementWithVolumeAndGPU(t *testing.T) {
	s := cluster().node("n1", 16*gib).node("n2", 32*gib).gpu("g1", "n1", 8*gib).instance("a", "flv-1", gib, 50)
	settle(t, s)
	a := s.Instances["a"].Assignment
	if a.Node != "n1" || a.Gpu != "g1" || a.RootVolume != "vol-a" || a.Vcpus != 2 || a.Generation != 1 {
		t.Errorf("assignment of a = %+v, want node n1, GPU g1, volume vol-a, 2 vCPUs and generation 1", a)
	}
	if v := s.Volumes["vol-a"].Assignment; v.Node != "n1" {
		t.Errorf("assignment of vol-a = %+v, want node n1", v)
	}
}

// Events arrive one after the other: a plan may be made when an instance is known and
// its root volume, which was created with it, is not.
func TestPlacedBeforeItsVolumeIsKnown(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-1", 0, 0)
	root := s.Volumes["vol-a"]
	delete(s.Volumes, "vol-a")
	settle(t, s)
	s.Volumes["vol-a"] = root
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n1" || a.RootVolume != "vol-a" {
		t.Errorf("node of a = %q with root volume %q, want n1 and vol-a", a.Node, a.RootVolume)
	}
	if v := s.Volumes["vol-a"].Assignment; v.Node != "n1" {
		t.Errorf("assignment of vol-a = %+v, want node n1", v)
	}
}

func TestReportsWhyItFitsNowhere(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *State
		want string
	}{
		{"no node", cluster().instance("a", "flv-1", 0, 0), "the cluster has no node"},
		{"memory", cluster().node("n1", 16*gib).instance("a", "flv-2", 0, 0), "n1: 900 GiB of RAM requested, 16 GiB of 16 GiB free"},
		{"no GPU", cluster().node("n1", 16*gib).instance("a", "flv-1", gib, 0), "n1: has no GPU in pool default"},
		{"VRAM", cluster().node("n1", 16*gib).gpu("g1", "n1", gib).instance("a", "flv-1", 2*gib, 0), "2 GiB of VRAM requested, the GPU has 1 GiB"},
		{"flavor", cluster().node("n1", 16*gib).instance("a", "flv-9", 0, 0), "flavor flv-9 does not exist any more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			settle(t, c.s)
			if a := c.s.Instances["a"].Assignment; a.Node != "" || !strings.Contains(a.Reason, c.want) {
				t.Errorf("assignment of a = %+v, want a reason with %q", a, c.want)
			}
		})
	}
}

// A pool with an overcommit of 150 % allocates half as much again as its GPU has, with
// memory of the node behind it, and no vGPU is larger than the GPU.
func TestOvercommit(t *testing.T) {
	s := cluster().node("n1", 13*gib).gpu("g1", "n1", 8*gib)
	n1 := s.Nodes["n1"]
	n1.Status.Vcpus = 64
	s.Nodes["n1"] = n1
	percent := func(n int64) {
		p := s.Pools["pool-1"]
		p.Spec.VramOvercommitPercent = n
		s.Pools["pool-1"] = p
	}
	placed := func(id string) string {
		settle(t, s)
		return s.Instances[id].Assignment.Reason
	}
	percent(150)
	s.instance("large", "flv-1", 9*gib, 0)
	if why := placed("large"); !strings.Contains(why, "9 GiB of VRAM requested, the GPU has 8 GiB") {
		t.Errorf("reason of a vGPU larger than the GPU = %q, want the requested and existing VRAM", why)
	}
	delete(s.Instances, "large")
	s.instance("a", "flv-1", 6*gib, 0).instance("b", "flv-1", 6*gib, 0)
	if a, b := placed("a"), placed("b"); a != "" || b != "" {
		t.Fatalf("reasons of a and b = %q and %q, want none", a, b)
	}
	s.instance("c", "flv-1", gib, 0)
	if why := placed("c"); !strings.Contains(why, "1 GiB of VRAM requested, 0 B of 12 GiB free") {
		t.Errorf("reason of a vGPU beyond the overcommit = %q, want the requested and free VRAM", why)
	}
	percent(100) // existing vGPUs keep their VRAM, and the memory behind it stays reserved
	if why := placed("a"); why != "" || s.Instances["b"].Assignment.Gpu != "g1" {
		t.Errorf("after lowering the overcommit: reason of a = %q, assignment of b = %+v; want both on GPU g1", why, s.Instances["b"].Assignment)
	}
	s.end("c") // it would reserve memory
	for i := range 9 {
		s.instance(fmt.Sprint("plain", i), "flv-1", 0, 0)
	}
	settle(t, s)
	var memory int64
	for _, in := range s.Instances {
		memory += in.Assignment.MemoryBytes
	}
	if memory > 9*gib {
		t.Errorf("memory of all instances = %d bytes, want at most 9 GiB: 4 of 13 GiB back VRAM", memory)
	}
	if why := s.Instances["plain8"].Assignment.Reason; !strings.Contains(why, "4 GiB is reserved for overcommitted VRAM") {
		t.Errorf("reason of plain8 = %q, want the memory reserved for overcommitted VRAM", why)
	}
}

func TestNeverAllocatesSliceTwice(t *testing.T) {
	s := cluster().node("n1", 100*gib).gpu("g1", "n1", 4*gib).gpu("g2", "n1", 4*gib)
	for i := range 10 {
		s.instance(fmt.Sprintf("i%d", i), "flv-1", 2*gib, 40)
	}
	settle(t, s)
	vram, share := map[api.GPUID]int64{}, map[api.GPUID]int64{}
	placed := 0
	for _, in := range s.Instances {
		if in.Assignment.Node != "" {
			placed++
			vram[in.Assignment.Gpu] += in.Assignment.VgpuVramBytes
			share[in.Assignment.Gpu] += in.Assignment.VgpuSharePercent
		}
	}
	if placed != 4 {
		t.Errorf("placed instances = %d, want 4: two per GPU (8 vCPUs)", placed)
	}
	for g := range vram {
		if vram[g] > 4*gib || share[g] > 100 {
			t.Errorf("allocated of GPU %s: %d bytes, %d %%; want at most 4 GiB and 100 %%", g, vram[g], share[g])
		}
	}
}

// A reinstalled instance has its new root volume before it may start, whether the
// planner sees the instance or the volume first and whichever planner ran in between,
// and a running one keeps the volume that it has open.
func TestReinstalled(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-1", 0, 0)
	settle(t, s)
	in := s.Instances["a"]
	in.Spec.Power, in.Spec.RootVolume, in.Meta.Generation, in.Status.Phase = api.PowerStopped, "vol-0", 2, api.InstanceStopped
	s.Instances["a"] = in
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.RootVolume != "vol-0" || a.Generation != 2 || a.Node != "n1" {
		t.Errorf("assignment of a before the volume is known = %+v, want vol-0 for generation 2 on n1", a)
	}
	old := s.Volumes["vol-a"]
	old.Spec.Root, old.Spec.Instance, old.Meta.DeletedAt = false, "", &now
	s.Volumes["vol-a"] = old
	s.Volumes["vol-0"] = api.Volume{Meta: api.Meta{ID: "vol-0", Finalizers: []string{"agent"}}, Spec: api.VolumeSpec{Instance: "a", Root: true}}
	settle(t, s)
	if v := s.Volumes["vol-0"]; v.Assignment.Node != "n1" {
		t.Errorf("node of the new root volume = %q, want n1", v.Assignment.Node)
	}
	// A planner that does not support reinstallation has seen the generation.
	for phase, want := range map[api.InstancePhase]api.VolumeID{api.InstanceStopped: "vol-0", api.InstanceRunning: "vol-a"} {
		in = s.Instances["a"]
		in.Assignment.RootVolume, in.Status.Phase = "vol-a", phase
		s.Instances["a"] = in
		settle(t, s)
		if a := s.Instances["a"].Assignment; a.RootVolume != want {
			t.Errorf("root volume of the %s instance = %s, want %s", phase, a.RootVolume, want)
		}
	}
}

func TestResizeWaitsUntilStopped(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-1", 0, 0)
	settle(t, s)
	s.Flavors["flv-3"] = api.Flavor{Meta: api.Meta{ID: "flv-3"}, Spec: api.FlavorSpec{Vcpus: 4, MemoryBytes: 2 * gib}}
	in := s.Instances["a"]
	in.Spec.Flavor, in.Meta.Generation, in.Status.Phase = "flv-3", 2, api.InstanceRunning
	s.Instances["a"] = in
	if steps := settle(t, s); len(steps) != 0 {
		t.Errorf("commands for a running instance = %v, want none", steps)
	}
	in.Status.Phase = api.InstanceStopped
	s.Instances["a"] = in
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Vcpus != 4 || a.Generation != 2 || a.RootVolume != "vol-a" {
		t.Errorf("assignment of a = %+v, want 4 vCPUs, generation 2 and vol-a", a)
	}
	// An instance that no longer fits keeps what it had, with the reason.
	in = s.Instances["a"]
	in.Spec.Flavor, in.Meta.Generation = "flv-2", 3
	s.Instances["a"] = in
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Vcpus != 4 || a.Generation != 2 || !strings.Contains(a.Reason, "900 GiB") {
		t.Errorf("assignment of a = %+v, want 4 vCPUs, generation 2 and the reason", a)
	}
	// It starts because there is a reason, which is cleared once it runs: the change is
	// tried again before its next start.
	for _, phase := range []api.InstancePhase{api.InstanceCreating, api.InstanceStarting, api.InstanceRunning} {
		in = s.Instances["a"]
		in.Status.Phase = phase
		s.Instances["a"] = in
		settle(t, s)
		if a := s.Instances["a"].Assignment; (a.Reason == "") != (phase == api.InstanceRunning) || a.Vcpus != 4 || a.Generation != 2 {
			t.Errorf("assignment of a in phase %s = %+v, want 4 vCPUs, generation 2, and a reason until it runs", phase, a)
		}
	}
}

func TestDeletedObjectsEnd(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("never-placed", "flv-2", 0, 0).instance("placed", "flv-1", 0, 0)
	settle(t, s)
	for id, in := range s.Instances {
		in.Meta.DeletedAt = &now
		s.Instances[id] = in
	}
	settle(t, s)
	if _, there := s.Instances["never-placed"]; there {
		t.Error("deleted instance that was never placed still exists, want it removed")
	}
	if _, there := s.Instances["placed"]; !there {
		t.Error("deleted instance was removed while an agent holds it, want it kept")
	}
	if v := s.Volumes["vol-placed"]; v.Meta.DeletedAt == nil {
		t.Error("root volume of a deleted instance is not deleted, want deletedAt")
	}
	if _, there := s.Volumes["vol-never-placed"]; there {
		t.Error("deleted volume that was never placed still exists, want it removed")
	}
}

func TestDeadNodeReceivesNothing(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-1", 0, 0)
	n := s.Nodes["n1"]
	n.Status.SeenAt = now.Add(-time.Hour)
	s.Nodes["n1"] = n
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "last seen 2026-11-21T11:00:00Z") {
		t.Errorf("assignment of a = %+v, want none with when the node was last seen", a)
	}
}
