package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// created sets that an instance was created n minutes after now.
func (s *State) created(id string, n int) *State {
	in := s.Instances[id]
	in.Meta.CreatedAt = now.Add(time.Duration(n) * time.Minute)
	s.Instances[id] = in
	return s
}

// end removes an instance and its root volume, as its agent does when it was deleted.
func (s *State) end(id string) {
	delete(s.Instances, id)
	delete(s.Volumes, "vol-"+id)
}

// where returns the node or GPU of each instance; empty if it waits.
func (s *State) where() map[string]string {
	out := map[string]string{}
	for id, in := range s.Instances {
		out[id] = string(in.Assignment.Gpu)
	}
	return out
}

// The first that does not fit reserves the GPU that lacks the least; small ones continue
// to be placed elsewhere and not there.
func TestTheHeadReserves(t *testing.T) {
	s := cluster().node("n1", 64*gib).node("n2", 64*gib).gpu("g1", "n1", 8*gib).gpu("g2", "n2", 8*gib)
	s.instance("a", "flv-1", 3*gib, 0)
	settle(t, s)
	s.instance("b", "flv-1", 5*gib, 0).created("b", 1)
	settle(t, s) // a on one GPU, b on the other
	if got := s.where(); got["a"] == got["b"] || got["a"] == "" || got["b"] == "" {
		t.Fatalf("GPUs of a and b = %v, want one each", got)
	}
	s.instance("large", "flv-1", 8*gib, 0).created("large", 2)
	s.instance("late", "flv-1", 4*gib, 0).created("late", 3)   // would fit beside a, which large waits for
	s.instance("small", "flv-1", 2*gib, 0).created("small", 4) // fits beside b
	s.instance("plain", "flv-1", 0, 0).created("plain", 5)     // has another queue
	settle(t, s)
	got := s.where()
	if want := s.Instances["b"].Assignment.Gpu; got["large"] != "" || got["late"] != "" || got["small"] != string(want) || s.Instances["plain"].Assignment.Node == "" {
		t.Errorf("GPUs = %v, want small on %s, plain placed, large and late waiting", got, want)
	}
	if a := s.Instances["late"].Assignment; a.Reason != reservedRoom || a.QueuedAt == nil {
		t.Errorf("assignment of late = %+v, want queued with the reason %q", a, reservedRoom)
	}
	s.end("a")
	settle(t, s)
	if a := s.Instances["large"].Assignment; a.Gpu == "" || a.QueuedAt == nil || a.PlacedAt == nil {
		t.Errorf("assignment of large once a GPU is free = %+v, want a GPU, queuedAt and placedAt", a)
	}
}

// An instance that no node could hold reserves nothing, and neither does one of a
// suspended organization.
func TestWhatReservesNothing(t *testing.T) {
	for name, change := range map[string]func(*State){
		"too large": func(s *State) {
			in := s.Instances["head"]
			in.Spec.Vgpu = &api.VGPUSpec{VramBytes: 16 * gib}
			s.Instances["head"] = in
		},
		"suspended": func(s *State) {
			s.Organizations["org-1"] = api.Organization{Meta: api.Meta{ID: "org-1"}, Spec: api.OrganizationSpec{Suspended: &api.OrganizationSuspension{}}}
			in := s.Instances["head"]
			in.Meta.Organization = "org-1"
			s.Instances["head"] = in
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster().node("n1", 64*gib).gpu("g1", "n1", 8*gib).instance("a", "flv-1", 4*gib, 0)
			settle(t, s)
			s.instance("head", "flv-1", 8*gib, 0).created("head", 1)
			change(s)
			s.instance("late", "flv-1", 4*gib, 0).created("late", 2)
			settle(t, s)
			if got := s.where(); got["head"] != "" || got["late"] != "g1" {
				t.Errorf("GPUs = %v, want head waiting and late on g1", got)
			}
		})
	}
}

// fits reports an error for each GPU and node that is used beyond its capacity.
func fits(t *testing.T, s *State) {
	t.Helper()
	vram, share, memory, vcpus := map[api.GPUID]int64{}, map[api.GPUID]int64{}, map[api.NodeID]int64{}, map[api.NodeID]int64{}
	for _, in := range s.Instances {
		a := in.Assignment
		vram[a.Gpu] += a.VgpuVramBytes
		share[a.Gpu] += a.VgpuSharePercent
		memory[a.Node] += placement.MemoryUse(a)
		vcpus[a.Node] += a.Vcpus
	}
	for id, g := range s.GPUs {
		if vram[api.GPUID(id)] > g.Status.VramBytes || share[api.GPUID(id)] > 100 {
			t.Fatalf("GPU %s has %d bytes and %d %% assigned, want at most %d and 100", id, vram[api.GPUID(id)], share[api.GPUID(id)], g.Status.VramBytes)
		}
	}
	for id, n := range s.Nodes {
		if memory[api.NodeID(id)] > n.Status.MemoryBytes || vcpus[api.NodeID(id)] > n.Status.Vcpus {
			t.Fatalf("node %s has %d bytes and %d vCPUs assigned, want at most %d and %d", id, memory[api.NodeID(id)], vcpus[api.NodeID(id)], n.Status.MemoryBytes, n.Status.Vcpus)
		}
	}
}

// lacks returns what the head of the queue of whole GPUs lacks on the node where it is
// the least, without reservations.
func pendingReason(s *State, in api.Instance) int64 {
	u := usage(s)
	empty := placement.NewRoom(s.GPUs, s.Pools, s.Health)
	least := int64(-1)
	for _, n := range objects.Sorted(s.Nodes) {
		if sum, _, ok := u.Missing(empty, n, wants(s.Flavors[string(in.Spec.Flavor)], in)); ok && (least < 0 || sum < least) {
			least = sum
		}
	}
	return least
}

// TestNoStarvation simulates a cluster in which small instances arrive faster than room
// appears, each with a limited lifetime: an instance that wants a whole GPU starts
// nonetheless, what it lacks never grows, and nothing exceeds its node or GPU.
func TestNoStarvation(t *testing.T) {
	const lifetime, largest = 12, 8 * gib
	started, blocked := 0, 0
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := cluster()
		for n := range 2 + random.IntN(2) {
			node := fmt.Sprint("n", n)
			s.node(node, 64*gib)
			for g := range 1 + random.IntN(2) {
				s.gpu(fmt.Sprintf("%s-g%d", node, g), api.NodeID(node), largest)
			}
		}
		ends, before := map[string]int{}, int64(-1)
		const head = "large"
		began := 0
		for step := range 400 {
			for len(waiting(s)) < 12 {
				id := fmt.Sprintf("s%d-%d", step, random.IntN(1_000_000))
				s.instance(id, "flv-1", int64(1+random.IntN(4))*gib, int64(random.IntN(40))).created(id, step)
				settle(t, s)
			}
			if step == 20 {
				s.instance(head, "flv-1", largest, 100).created(head, step)
			}
			settle(t, s)
			fits(t, s)
			in, waits := s.Instances[head]
			if waits && in.Assignment.Node != "" {
				began = step
				break
			}
			if waits && QueuePlaces(s, []api.Instance{in}, now)[head].Position == 1 {
				after := pendingReason(s, in)
				if before >= 0 && after > before {
					t.Fatalf("seed %d, step %d: the first of the queue lacks %d, want at most %d as before", seed, step, after, before)
				}
				before = after
				blocked++
			}
			for _, id := range slices.Sorted(maps.Keys(s.Instances)) {
				switch end, known := ends[id]; {
				case s.Instances[id].Assignment.Node == "":
				case !known:
					ends[id] = step + 1 + random.IntN(lifetime)
				case step >= end:
					s.end(id)
				}
			}
		}
		if began == 0 {
			t.Errorf("seed %d: the large instance waits after 400 steps, want it started", seed)
			continue
		}
		started++
	}
	if blocked < started {
		t.Errorf("the large instances were first of the queue for %d steps in %d runs, want at least one in each", blocked, started)
	}
}

// While only one GPU can hold the head of the queue, the head starts at the same moment
// with instances that arrive behind it and without: they only use what it leaves.
func TestBackfillDoesNotDelay(t *testing.T) {
	starts := func(seed uint64, arrivals bool) (head, placed int) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := cluster().node("n1", 64*gib).node("n2", 64*gib).gpu("g1", "n1", 16*gib)
		s.instance("a", "flv-1", 3*gib, 0).instance("b", "flv-1", 5*gib, 0).instance("c", "flv-1", 6*gib, 0)
		settle(t, s)
		s.gpu("g2", "n2", 8*gib) // too small for the head
		ends := map[string]int{}
		for _, id := range []string{"a", "b", "c"} {
			ends[id] = 3 + random.IntN(9)
		}
		s.instance("head", "flv-1", 12*gib, 50).created("head", 1)
		for step := range 30 {
			if arrivals {
				id := fmt.Sprint("x", step)
				s.instance(id, "flv-1", int64(1+random.IntN(6))*gib, 0).created(id, 2+step)
			}
			settle(t, s)
			fits(t, s)
			if s.Instances["head"].Assignment.Node != "" {
				return step, placed
			}
			placed = 0
			for id, in := range s.Instances {
				if strings.HasPrefix(id, "x") && in.Assignment.Node != "" {
					placed++
				}
			}
			for id, end := range ends {
				if step == end {
					s.end(id)
				}
			}
		}
		return -1, placed
	}
	for seed := range uint64(50) {
		alone, _ := starts(seed, false)
		with, placed := starts(seed, true)
		if alone <= 0 || with != alone {
			t.Errorf("seed %d: the head starts at step %d with arrivals behind it, want %d as without", seed, with, alone)
		}
		if placed == 0 {
			t.Errorf("seed %d: no instance was placed while the head waits, want at least one", seed)
		}
	}
}

func TestOrderOfQueue(t *testing.T) {
	at := func(id string, minute int, priority int64, a api.InstanceAssignment) api.Instance {
		return api.Instance{Meta: api.Meta{ID: id, CreatedAt: now.Add(time.Duration(minute) * time.Minute)}, Spec: api.InstanceSpec{Priority: priority}, Assignment: a}
	}
	list := []api.Instance{
		at("new-late", 2, 100, api.InstanceAssignment{}),
		at("new-early", 1, 0, api.InstanceAssignment{}),
		at("fallen-low", 9, 0, api.InstanceAssignment{RootVolume: "v"}),
		at("fallen-high", 9, 50, api.InstanceAssignment{RootVolume: "v", Epoch: 1}),
		at("running", 9, 20, api.InstanceAssignment{Node: "n1", RootVolume: "v"}),
	}
	list = byTurn(cluster(), list)
	var got []string
	for _, in := range list {
		got = append(got, in.Meta.ID)
	}
	if diff := cmp.Diff([]string{"fallen-high", "running", "fallen-low", "new-early", "new-late"}, got); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

// Positions are counted in the instance's own queue; the estimate is the median wait of
// similar instances, and unknown without enough of them.
func TestQueuePlaces(t *testing.T) {
	s := cluster()
	minute := func(n int) *time.Time { at := now.Add(time.Duration(n) * time.Minute); return &at }
	put := func(id string, vram int64, queued, placed *time.Time) {
		s.instance(id, "flv-1", vram, 0).created(id, 0)
		in := s.Instances[id]
		in.Assignment.QueuedAt, in.Assignment.PlacedAt = queued, placed
		if placed != nil || queued == nil {
			in.Assignment.Node = "n1"
		}
		s.Instances[id] = in
	}
	put("w1", 4*gib, minute(-30), nil)
	put("w2", 4*gib, minute(-5), nil)
	s.created("w1", -30).created("w2", -5)
	put("plain", 0, minute(-5), nil)
	put("runs", 4*gib, nil, nil)
	places := func() map[string]api.InstanceQueue {
		return QueuePlaces(s, []api.Instance{s.Instances["w1"], s.Instances["w2"], s.Instances["plain"], s.Instances["runs"]}, now)
	}
	want := map[string]api.InstanceQueue{
		"w1":    {Position: 1, Length: 2, Since: minute(-30)},
		"w2":    {Position: 2, Length: 2, Since: minute(-5)},
		"plain": {Position: 1, Length: 1, Since: minute(-5)},
	}
	if diff := cmp.Diff(want, places()); diff != "" {
		t.Errorf("places differ (-want +got):\n%s", diff)
	}
	put("p1", 4*gib, minute(-100), minute(-90))
	put("p2", 8*gib, minute(-100), minute(-80))
	put("p3", 2*gib, minute(-100), minute(-40))
	put("large", 9*gib, minute(-100), minute(-99)) // more than twice as large
	put("old", 4*gib, minute(-60*24*60), minute(-50*24*60))
	put("resized", 4*gib, minute(-100), minute(-1))
	of := s.Instances["resized"]
	of.Assignment.QueuedFor = api.QueuedForResize
	s.Instances["resized"] = of
	tried := cluster().instance("tried", "flv-1", 4*gib, 0).Instances["tried"]
	want = map[string]api.InstanceQueue{
		"w1":    {Position: 1, Length: 2, Since: minute(-30), Samples: 3, UsualSeconds: 1200},
		"w2":    {Position: 2, Length: 2, Since: minute(-5), Samples: 3, UsualSeconds: 1200, ExpectedAt: minute(15)},
		"plain": {Position: 1, Length: 1, Since: minute(-5)},
	}
	if diff := cmp.Diff(want, places()); diff != "" {
		t.Errorf("places with samples differ (-want +got):\n%s", diff)
	}
	last := api.InstanceQueue{Position: 3, Length: 3, Samples: 3, UsualSeconds: 1200, ExpectedAt: minute(20)}
	if diff := cmp.Diff(last, NextPlace(s, tried, now)); diff != "" {
		t.Errorf("place of an instance that does not exist yet differs (-want +got):\n%s", diff)
	}
	larger := s.Instances["runs"]
	larger.Assignment.QueuedAt = minute(-10) // its resize was queued before w2
	if q := NextPlace(s, larger, now); q.Position != 2 || q.Length != 3 || q.Samples != 1 {
		t.Errorf("place of a queued resize with another size = %+v, want 2 of 3, and one sample: waits of resizes only", q)
	}
}

// At its deadline a waiting instance is deleted, and what refers to it is detached;
// one that has a node, or had one, is not.
func TestQueueDeadline(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-2", 0, 0).instance("placed", "flv-1", 0, 0)
	until := now.Add(time.Hour)
	for _, id := range []string{"a", "placed"} {
		s.spec(id, func(i *api.InstanceSpec) { i.QueueUntil = &until })
	}
	s.Volumes["data"] = api.Volume{Meta: api.Meta{ID: "data", Revision: 3}, Spec: api.VolumeSpec{Instance: "a", SizeBytes: gib}}
	s.FloatingIPs["fip"] = api.FloatingIP{Meta: api.Meta{ID: "fip", Revision: 4}, Spec: api.FloatingIPSpec{Instance: "a"}}
	s.LoadBalancers["lb"] = api.LoadBalancer{Meta: api.Meta{ID: "lb", Revision: 5}, Spec: api.LoadBalancerSpec{Backends: []api.LoadBalancerBackend{{Instance: "a"}, {Instance: "placed"}}}}
	ofDeadline := func(at time.Time) (got []string) {
		for _, c := range next(t, s, at) {
			if c.Op == api.OpDelete || c.Op == api.OpPutSpec {
				got = append(got, fmt.Sprint(c.Op == api.OpDelete, " ", c.ID, " ", strings.Contains(string(c.Data), `"a"`)))
			}
		}
		return got
	}
	settleInstances := func() {
		for _, c := range next(t, s, now) {
			if c.Kind == api.KindInstance {
				commit(t, s, c)
			}
		}
	}
	settleInstances()
	if got := ofDeadline(until.Add(-time.Second)); len(got) != 0 {
		t.Errorf("before the deadline: %q, want nothing", got)
	}
	if diff := cmp.Diff([]string{"false data false", "false fip false", "false lb false", "true a false"}, ofDeadline(until)); diff != "" {
		t.Errorf("commands at the deadline differ (-want +got):\n%s", diff)
	}
}

// raised returns the events of commands.
func raised(t *testing.T, cmds []api.Command) (out []string) {
	t.Helper()
	for _, c := range cmds {
		if c.Event == nil {
			continue
		}
		var e api.QueueEvent
		if err := json.Unmarshal(c.Event.Data, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s since %s", c.Event.Type, e.ID, e.QueuedAt.Format(time.TimeOnly)))
	}
	return out
}

// The end of an instance's wait raises one event; an instance that did not wait raises
// none.
func TestQueueEvents(t *testing.T) {
	s := cluster().node("n1", 64*gib).gpu("g1", "n1", 8*gib).instance("a", "flv-1", 8*gib, 0)
	step := func(at time.Time) []string {
		cmds := next(t, s, at)
		for _, c := range cmds {
			commit(t, s, c)
		}
		return raised(t, cmds)
	}
	if got := step(now); len(got) != 0 {
		t.Errorf("events of an instance that fits at once: %q, want none", got)
	}
	until := now.Add(4 * time.Second)
	s.instance("waits", "flv-1", 8*gib, 0).created("waits", 1)
	s.instance("late", "flv-1", 8*gib, 0).created("late", 2).spec("late", func(i *api.InstanceSpec) { i.QueueUntil = &until })
	since := now.Add(time.Second)
	if got := step(since); len(got) != 0 {
		t.Errorf("events while they wait: %q, want none", got)
	}
	s.end("a")
	if got, want := step(now.Add(2*time.Second)), []string{"instance.placed waits since " + since.Format(time.TimeOnly)}; !slices.Equal(got, want) {
		t.Errorf("events once there is room: %q, want %q", got, want)
	}
	if got := step(now.Add(3 * time.Second)); len(got) != 0 {
		t.Errorf("events afterwards: %q, want none", got)
	}
	if got, want := raised(t, next(t, s, until)), []string{"instance.queue_expired late since " + since.Format(time.TimeOnly)}; !slices.Equal(got, want) {
		t.Errorf("events at the deadline: %q, want %q", got, want)
	}
}
