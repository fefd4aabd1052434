package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestNoOverallocation places random instances on random nodes and GPUs.
// It checks that no node's processors and memory, and no GPU's VRAM and share, are
// allocated beyond the total, and that a pending instance would exceed one of these
// limits wherever it went.
func TestNoOverallocation(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := cluster()
		f := s.Flavors["flv-1"]
		f.Spec.RootBytes = int64(random.IntN(3)) * 7 * gib
		s.Flavors["flv-1"] = f
		for n := range 1 + random.IntN(3) {
			node := api.NodeID(fmt.Sprint("n", n))
			s.node(string(node), int64(1+random.IntN(12))*gib)
			s.limitDisk(string(node), int64(random.IntN(60))*gib)
			for g := range random.IntN(4) {
				s.gpu(fmt.Sprintf("%s-g%d", node, g), node, int64(4+4*random.IntN(5))*gib)
			}
		}
		for i := range 20 {
			vram, share := int64(random.IntN(12))*gib, int64(random.IntN(101)) // no VRAM: no vGPU
			s.instance(fmt.Sprint("i", i), "flv-1", vram, share)
		}
		settle(t, s)
		g := given(s)
		for _, wrong := range g.excess(s) {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		for id, in := range s.Instances {
			if in.Assignment.Node != "" || in.Assignment.Reason == reservedRoom {
				continue // what is reserved is checked in queue_test.go
			}
			if where := g.room(s, in); where != "" {
				t.Errorf("seed %d: %s is pending (%s), but fits %s", seed, id, in.Assignment.Reason, where)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// limitDisk sets the limit of a node's local pool; 0 means none.
func (s *State) limitDisk(id string, limit int64) {
	n := s.Nodes[id]
	n.Status.Pools = []api.StoragePool{{Name: api.PoolLocal, SizeBytes: 100 * gib, FreeBytes: gib, LimitBytes: limit}}
	s.Nodes[id] = n
}

// A volume without an instance, and one for an existing instance, are placed within the
// limit, or stay pending with a reason that has the numbers.
func TestVolumesWithinTheLimit(t *testing.T) {
	s := cluster().node("n1", 8*gib).node("n2", 8*gib)
	s.limitDisk("n1", 30*gib)
	s.limitDisk("n2", 20*gib)
	for i := range 7 { // three on one, two on the other
		id := fmt.Sprint("v", i)
		s.Volumes[id] = api.Volume{Meta: api.Meta{ID: id, Name: id}, Spec: api.VolumeSpec{SizeBytes: 10 * gib}}
	}
	settle(t, s)
	g, waiting := given(s), 0
	for _, wrong := range g.excess(s) {
		t.Errorf("allocated beyond the limit: %s", wrong)
	}
	for id, v := range s.Volumes {
		if v.Assignment.Node != "" {
			continue
		}
		waiting++
		for _, want := range []string{"30 GiB of 30 GiB allocated", "20 GiB of 20 GiB allocated", "1 GiB free beside the reserve of 0 B"} {
			if !strings.Contains(v.Assignment.Reason, want) {
				t.Errorf("reason of %s = %q, want it to contain %q", id, v.Assignment.Reason, want)
			}
		}
	}
	if waiting != 2 {
		t.Errorf("pending volumes = %d, want 2", waiting)
	}

	s = cluster().node("n1", 8*gib).instance("i1", "flv-1", 0, 0)
	s.limitDisk("n1", 10*gib)
	settle(t, s)
	for id, size := range map[string]int64{"fits": 8 * gib, "large": 11 * gib} {
		s.Volumes[id] = api.Volume{Meta: api.Meta{ID: id, Name: id}, Spec: api.VolumeSpec{SizeBytes: size, Instance: "i1"}}
	}
	settle(t, s)
	if a := s.Volumes["fits"].Assignment; a.Node != "n1" {
		t.Errorf("assignment of a volume of 8 GiB in a limit of 10 = %+v, want node n1", a)
	}
	if a := s.Volumes["large"].Assignment; a.Node != "" || !strings.Contains(a.Reason, "11 GiB of local storage requested, 8 GiB of 10 GiB allocated") {
		t.Errorf("assignment of a volume of 11 GiB in a limit of 10 = %+v, want none with the reason", a)
	}
}

// sums is what is allocated, counted independently of the planner.
type sums struct {
	vcpus, memory map[api.NodeID]int64
	disk          map[api.NodeID]int64
	vram, share   map[api.GPUID]int64
}

func given(s *State) sums {
	g := sums{map[api.NodeID]int64{}, map[api.NodeID]int64{}, map[api.NodeID]int64{}, map[api.GPUID]int64{}, map[api.GPUID]int64{}}
	for _, in := range s.Instances {
		a := in.Assignment
		g.vcpus[a.Node] += a.Vcpus
		g.memory[a.Node] += a.MemoryBytes
		if a.Gpu != "" {
			g.memory[a.Node] += gib / 2 // for its workers
		}
		g.vram[a.Gpu] += a.VgpuVramBytes
		g.share[a.Gpu] += a.VgpuSharePercent
	}
	for _, v := range s.Volumes {
		g.disk[v.Assignment.Node] += v.Spec.SizeBytes
	}
	return g
}

func (g sums) excess(s *State) (wrong []string) {
	for id, n := range s.Nodes {
		node := api.NodeID(id)
		if g.vcpus[node] > n.Status.Vcpus || g.memory[node] > n.Status.MemoryBytes {
			wrong = append(wrong, fmt.Sprintf("node %s: %d of %d vCPUs, %d of %d bytes", id, g.vcpus[node], n.Status.Vcpus, g.memory[node], n.Status.MemoryBytes))
		}
		if limit := n.LocalStorage().LimitBytes; limit > 0 && g.disk[node] > limit {
			wrong = append(wrong, fmt.Sprintf("node %s: %d of %d bytes of storage allocated", id, g.disk[node], limit))
		}
	}
	for id, c := range s.GPUs {
		card := api.GPUID(id)
		if g.vram[card] > c.Status.VramBytes || g.share[card] > 100 {
			wrong = append(wrong, fmt.Sprintf("GPU %s: %d of %d bytes, %d %%", id, g.vram[card], c.Status.VramBytes, g.share[card]))
		}
	}
	return wrong
}

// room returns a place with room for a pending instance, or nothing.
func (g sums) room(s *State, in api.Instance) string {
	f := s.Flavors[string(in.Spec.Flavor)].Spec
	memory := f.MemoryBytes
	if in.Spec.Vgpu != nil {
		memory += gib / 2
	}
	for id, n := range s.Nodes {
		node := api.NodeID(id)
		if g.vcpus[node]+f.Vcpus > n.Status.Vcpus || g.memory[node]+memory > n.Status.MemoryBytes {
			continue
		}
		if limit := n.LocalStorage().LimitBytes; limit > 0 && f.RootBytes > 0 && g.disk[node]+f.RootBytes > limit {
			continue
		}
		if in.Spec.Vgpu == nil {
			return "node " + id
		}
		for card, c := range s.GPUs {
			have := api.GPUID(card)
			if c.Status.Node == node && g.vram[have]+in.Spec.Vgpu.VramBytes <= c.Status.VramBytes && g.share[have]+in.Spec.Vgpu.SharePercent <= 100 {
				return "GPU " + card
			}
		}
	}
	return ""
}
