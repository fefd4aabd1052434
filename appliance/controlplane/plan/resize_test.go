package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// resize changes the size that a spec requests.
func (s *State) resize(id string, change func(*api.InstanceSpec)) api.Instance {
	s.spec(id, change)
	in := s.Instances[id]
	in.Meta.Generation++
	s.Instances[id] = in
	return in
}

// phase sets what the agent of an instance reports.
func (s *State) phase(id string, p api.InstancePhase) {
	in := s.Instances[id]
	in.Status.Phase, in.Status.Node, in.Status.Epoch, in.Status.Released = p, in.Assignment.Node, in.Assignment.Epoch, false
	s.Instances[id] = in
}

// agents settles the plan, and releases what is to leave its node, until nothing changes.
func (s *State) agents(t *testing.T) {
	t.Helper()
	for range 20 {
		settle(t, s)
		left := false
		for id, in := range s.Instances {
			if in.Assignment.Release {
				s.phase(id, api.InstanceStopped)
				in = s.Instances[id]
				in.Status.Released, left = true, true
				s.Instances[id] = in
			}
		}
		if !left {
			return
		}
	}
	t.Fatal("instances are released again and again")
}

func vram(n int64) func(*api.InstanceSpec) {
	return func(i *api.InstanceSpec) { i.Vgpu = &api.VGPUSpec{VramBytes: n} }
}

// otherPool adds a GPU pool and puts a GPU into it.
func (s *State) otherPool(gpu string) *State {
	s.Pools["pool-2"] = api.GPUPool{Meta: api.Meta{ID: "pool-2", Name: "other"}}
	g := s.GPUs[gpu]
	g.Spec.Pool = "other"
	s.GPUs[gpu] = g
	return s
}

// TestResize checks where a resize finds room, and that what is predicted before is what
// happens then.
func TestResize(t *testing.T) {
	for _, c := range []struct {
		name   string
		local  bool // the root volume is stored on the node
		vram   int64
		change func(*api.InstanceSpec)
		other  func(*State) // what else is in the cluster
		gpu    string       // expected
		why    string
	}{
		{name: "larger", vram: 2 * gib, change: vram(8 * gib), gpu: "g1"},
		{name: "smaller", vram: 4 * gib, change: vram(gib), gpu: "g1"},
		{name: "without a vGPU", vram: 4 * gib, change: func(i *api.InstanceSpec) { i.Vgpu = nil }},
		{name: "too large", vram: 2 * gib, change: vram(64 * gib), gpu: "g1", why: "n1: GPU g1: 64 GiB of VRAM requested, the GPU has 8 GiB"},
		{name: "too much memory", vram: 2 * gib, change: func(i *api.InstanceSpec) { i.Flavor = "flv-2" }, gpu: "g1", why: "n1: 900 GiB of RAM requested"},
		{name: "another GPU of its node", local: true, vram: 2 * gib, change: vram(12 * gib), other: func(s *State) { s.gpu("g3", "n1", 16*gib) }, gpu: "g3"},
		{name: "a pool on its node", local: true, vram: 2 * gib, change: func(i *api.InstanceSpec) { i.Vgpu = &api.VGPUSpec{VramBytes: 2 * gib, Pool: "other"} },
			other: func(s *State) { s.gpu("g3", "n1", 16*gib).otherPool("g3") }, gpu: "g3"},
		{name: "a model on another node", vram: 2 * gib, change: func(i *api.InstanceSpec) { i.Vgpu = &api.VGPUSpec{VramBytes: 2 * gib, Model: "H"} },
			other: func(s *State) {
				g := s.gpu("g2", "n2", 16*gib).GPUs["g2"]
				g.Status.Model = "H"
				s.GPUs["g2"] = g
			}, gpu: "g2"},
		{name: "another node", vram: 2 * gib, change: vram(12 * gib), other: func(s *State) { s.gpu("g2", "n2", 16*gib) }, gpu: "g2"},
		{name: "bound to its node", local: true, vram: 2 * gib, change: vram(12 * gib), other: func(s *State) { s.gpu("g2", "n2", 16*gib) }, gpu: "g1",
			why: "node n2 has room, but its disk is stored on node n1"},
		{name: "ephemeral", vram: 2 * gib, change: func(i *api.InstanceSpec) { vram(12 * gib)(i); i.Ephemeral = true }, local: true,
			other: func(s *State) { s.gpu("g2", "n2", 16*gib) }, gpu: "g1", why: "node n2 has room"},
		{name: "behind the queue", vram: 2 * gib, change: vram(8 * gib), other: func(s *State) {
			s.instance("first", "flv-1", 8*gib, 0)
		}, gpu: "g1", why: reservedRoom},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three()
			for id, n := range s.Nodes {
				n.Status.MemoryBytes = 16 * gib
				s.Nodes[id] = n
			}
			s.gpu("g1", "n1", 8*gib).instance("a", "flv-1", c.vram, 0)
			if c.local {
				s.spec("a", func(i *api.InstanceSpec) { i.StoragePool = "local" })
			}
			s.on(t, "n1")
			if c.other != nil {
				c.other(s)
			}
			settle(t, s)
			in := s.resize("a", c.change)
			why := ResizeReason(s, in, now).Text
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("ResizeReason() = %q, want %q", why, c.why)
			}
			if steps := settle(t, s); len(steps) != 0 {
				t.Errorf("commands for the running instance = %v, want none", steps)
			}
			s.phase("a", api.InstanceStopped)
			s.agents(t)
			a := s.Instances["a"].Assignment
			done := !resized(s, s.Instances["a"]) && a.Generation == in.Meta.Generation
			if string(a.Gpu) != c.gpu || done != (c.why == "") || done != (a.QueuedAt == nil) || a.Node == "" || a.RootVolume != "vol-a" || a.Release {
				t.Errorf("assignment = %+v, want GPU %q, resized %t", a, c.gpu, c.why == "")
			}
			if v := s.Volumes["vol-a"].Assignment; v.Node != a.Node || v.Recreate != 0 {
				t.Errorf("assignment of the root volume = %+v, want node %s and its content", v, a.Node)
			}
		})
	}
}

// TestPredictedResize checks in random clusters that a resize does what is predicted, and
// that nothing is used beyond its capacity.
func TestPredictedResize(t *testing.T) {
	done, refused := 0, 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := three()
		for i, id := range []string{"n1", "n2", "n3"} {
			n := s.Nodes[id]
			n.Status.MemoryBytes, n.Status.Vcpus = int64(4+random.IntN(12))*gib, int64(6+random.IntN(12))
			s.Nodes[id] = n
			if random.IntN(3) > 0 {
				s.gpu(fmt.Sprint("g", i), api.NodeID(id), int64(4+random.IntN(8))*gib)
			}
		}
		s.Flavors["flv-3"] = api.Flavor{Meta: api.Meta{ID: "flv-3"}, Spec: api.FlavorSpec{Vcpus: 4, MemoryBytes: 3 * gib}}
		for i := range 4 + random.IntN(8) {
			id := fmt.Sprint("i", i)
			s.instance(id, "flv-1", int64(random.IntN(4))*gib, int64(random.IntN(30))).created(id, i-60)
			s.spec(id, func(x *api.InstanceSpec) { x.StoragePool = []string{"", "local"}[random.IntN(2)] })
			settle(t, s)
		}
		s.running()
		var placed []string
		for _, in := range objects.Sorted(s.Instances) {
			if in.Assignment.Node != "" {
				placed = append(placed, in.Meta.ID)
			}
		}
		if len(placed) == 0 {
			continue
		}
		id := placed[random.IntN(len(placed))]
		in := s.resize(id, func(i *api.InstanceSpec) {
			i.Flavor = []api.FlavorID{"flv-1", "flv-3"}[random.IntN(2)]
			i.Vgpu = nil
			if random.IntN(3) > 0 {
				vram(int64(1+random.IntN(10)) * gib)(i)
			}
		})
		why := ResizeReason(s, in, now).Text
		s.phase(id, api.InstanceStopped)
		s.agents(t)
		fits(t, s)
		now := s.Instances[id]
		switch is := !resized(s, now); {
		case why == "" && is:
			done++
		case why != "" && !is && now.Assignment.Node == in.Assignment.Node && queued(now.Assignment):
			refused++
		default:
			t.Errorf("seed %d: predicted %q; assignment before %+v, after %+v", seed, why, in.Assignment, now.Assignment)
		}
	}
	if done < 20 || refused < 20 {
		t.Errorf("%d resizes done and %d refused, want at least 20 of each", done, refused)
	}
}

// TestResizeInTheQueue checks that a stopped instance that does not get its size has a
// place in the queue, that it reserves what it lacks as the first, gets it when there is
// room, and has no place while it runs or after the resize was withdrawn.
func TestResizeInTheQueue(t *testing.T) {
	s := cluster().node("n1", 64*gib).gpu("g1", "n1", 8*gib)
	s.Health, s.Self = map[string]Health{}, "n1" // the node's own clock does not count
	s.instance("a", "flv-1", 4*gib, 0).instance("b", "flv-1", 2*gib, 0)
	settle(t, s)
	s.running()
	s.resize("a", vram(8*gib))
	var events []string
	at := func(minute int) {
		t.Helper()
		for range 10 {
			cmds := next(t, s, now.Add(time.Duration(minute)*time.Minute))
			events = append(events, raised(t, cmds)...)
			for _, c := range cmds {
				commit(t, s, c)
			}
			if len(cmds) == 0 {
				return
			}
		}
		t.Fatal("the plan does not settle")
	}
	places := func() []string {
		var ids []string
		for _, in := range waiting(s) {
			ids = append(ids, in.Meta.ID)
		}
		return ids
	}
	at(1)
	if got := places(); len(got) != 0 {
		t.Errorf("queue while a runs = %v, want it empty", got)
	}
	s.phase("a", api.InstanceStopped)
	at(2)
	s.instance("late", "flv-1", 2*gib, 0).created("late", 3) // would fit, but a waits for it
	at(3)
	if got := places(); !slices.Equal(got, []string{"a", "late"}) {
		t.Errorf("queue = %v, want a and late", got)
	}
	in := s.Instances["a"]
	if q := QueuePlaces(s, []api.Instance{in}, now.Add(4*time.Minute))["a"]; q.Position != 1 || q.Length != 2 || q.Since == nil || !q.Since.Equal(now.Add(2*time.Minute)) {
		t.Errorf("place of a = %+v, want 1 of 2 since minute 2", q)
	}
	if a := in.Assignment; a.VgpuVramBytes != 4*gib || a.Generation != 1 || a.Reason == "" {
		t.Errorf("assignment of a = %+v, want its old size with the reason", a)
	}
	s.phase("a", api.InstanceRunning) // started with its old size: it holds nothing up
	at(5)
	if a := s.Instances["late"].Assignment; a.Gpu != "g1" {
		t.Errorf("assignment of late while a runs = %+v, want GPU g1", a)
	}
	s.phase("a", api.InstanceStopped)
	at(6)
	if a := s.Instances["a"].Assignment; !queued(a) || a.QueuedFor != api.QueuedForResize || !a.QueuedAt.Equal(now.Add(2*time.Minute)) {
		t.Errorf("assignment of a, stopped again = %+v, want its old place", a)
	}
	s.end("b")
	s.end("late")
	at(7)
	if a := s.Instances["a"].Assignment; a.VgpuVramBytes != 8*gib || a.Generation != 2 || a.Reason != "" || a.PlacedAt == nil || !a.PlacedAt.Equal(now.Add(7*time.Minute)) {
		t.Errorf("assignment of a once there is room = %+v, want 8 GiB, and the end of its wait", a)
	}
	if want := []string{"instance.placed late since 12:03:00", "instance.resized a since 12:02:00"}; !slices.Equal(events, want) {
		t.Errorf("events = %q, want %q", events, want)
	}

	s.resize("a", vram(16*gib))
	at(8)
	size := s.Instances["a"].Assignment.Size
	if size == nil || size.Flavor != "flv-1" || size.Vgpu.VramBytes != 8*gib {
		t.Fatalf("size while the resize waits = %+v, want the one that it has", size)
	}
	s.resize("a", func(i *api.InstanceSpec) { *i = i.WithSize(*size) })
	at(9)
	if a := s.Instances["a"].Assignment; queued(a) || a.Generation != 4 || a.Reason != "" {
		t.Errorf("assignment after the resize was cancelled = %+v, want generation 4 and no wait", a)
	}
}

// TestResizeReservesOnlyWhatItLacks checks that the first of the queue does not reserve
// again what it uses itself.
func TestResizeReservesOnlyWhatItLacks(t *testing.T) {
	s := cluster().node("n1", 64*gib).gpu("g1", "n1", 8*gib) // 8 vCPUs
	s.instance("a", "flv-1", 4*gib, 0).instance("b", "flv-1", 4*gib, 0)
	settle(t, s)
	s.resize("a", vram(8*gib))
	s.phase("a", api.InstanceStopped)
	settle(t, s)
	s.instance("c", "flv-1", 0, 0).instance("d", "flv-1", 0, 0).created("c", 1).created("d", 2)
	settle(t, s)
	for _, id := range []string{"c", "d"} {
		if a := s.Instances[id].Assignment; a.Node != "n1" {
			t.Errorf("assignment of %s = %+v, want node n1, whose other 4 vCPUs are free", id, a)
		}
	}
}

// TestRoomGoneWhileReleased checks that an instance stays on its node with its size if the
// room for its resize is gone when its node has released it.
func TestRoomGoneWhileReleased(t *testing.T) {
	s := three().gpu("g1", "n1", 8*gib).instance("a", "flv-1", 2*gib, 0)
	s.on(t, "n1")
	s.gpu("g2", "n2", 16*gib)
	s.resize("a", vram(12*gib))
	s.phase("a", api.InstanceStopped)
	settle(t, s)
	if a := s.Instances["a"].Assignment; !a.Release || a.Node != "n1" || a.VgpuVramBytes != 2*gib {
		t.Fatalf("assignment = %+v, want its size on n1, to be released", a)
	}
	delete(s.GPUs, "g2")
	s.agents(t)
	if a := s.Instances["a"].Assignment; a.Release || a.Node != "n1" || a.Gpu != "g1" || a.VgpuVramBytes != 2*gib || a.Epoch != 1 || !queued(a) || a.Reason == "" {
		t.Errorf("assignment without the room = %+v, want its size on n1 and g1 in epoch 1, queued", a)
	}
	s.phase("a", api.InstanceStopped)
	s.gpu("g2", "n2", 16*gib)
	settle(t, s)
	s.phase("a", api.InstanceStopped)
	in := s.Instances["a"]
	in.Status.Released = true
	s.Instances["a"] = in
	if got := raised(t, next(t, s, now)); !slices.Equal(got, []string{"instance.resized a since 12:00:00"}) {
		t.Errorf("events of the move to the node with room = %q, want one", got)
	}
	s.agents(t)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.VgpuVramBytes != 12*gib || a.PlacedAt == nil {
		t.Errorf("assignment once there is room again = %+v, want 12 GiB on n2", a)
	}
}
