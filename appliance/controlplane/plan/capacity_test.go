package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestNothingIsGivenBeyondWhatIsThere places random instances on random nodes
// and cards. No node's processors and memory, and no card's VRAM and share, are
// given out beyond the whole; and what waits would indeed break one of these
// limits wherever it went.
func TestNothingIsGivenBeyondWhatIsThere(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := cluster()
		for n := range 1 + random.IntN(3) {
			node := api.NodeID(fmt.Sprint("n", n))
			s.node(string(node), int64(1+random.IntN(12))*gib)
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
		for _, wrong := range g.beyond(s) {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		for id, in := range s.Instances {
			if in.Assignment.Node != "" {
				continue
			}
			if where := g.room(s, in); where != "" {
				t.Errorf("seed %d: %s waits (%s) and fits %s", seed, id, in.Assignment.Reason, where)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// sums of what was given out, counted without the planner.
type sums struct {
	vcpus, memory map[api.NodeID]int64
	vram, share   map[api.GPUID]int64
}

func given(s *State) sums {
	g := sums{map[api.NodeID]int64{}, map[api.NodeID]int64{}, map[api.GPUID]int64{}, map[api.GPUID]int64{}}
	for _, in := range s.Instances {
		a := in.Assignment
		g.vcpus[a.Node] += a.Vcpus
		g.memory[a.Node] += a.MemoryBytes
		if a.Gpu != "" {
			g.memory[a.Node] += gib / 2 // its workers'
		}
		g.vram[a.Gpu] += a.VgpuVramBytes
		g.share[a.Gpu] += a.VgpuSharePercent
	}
	return g
}

func (g sums) beyond(s *State) (wrong []string) {
	for id, n := range s.Nodes {
		node := api.NodeID(id)
		if g.vcpus[node] > n.Status.Vcpus || g.memory[node] > n.Status.MemoryBytes {
			wrong = append(wrong, fmt.Sprintf("node %s: %d of %d vCPUs, %d of %d bytes", id, g.vcpus[node], n.Status.Vcpus, g.memory[node], n.Status.MemoryBytes))
		}
	}
	for id, c := range s.GPUs {
		card := api.GPUID(id)
		if g.vram[card] > c.Status.VramBytes || g.share[card] > 100 {
			wrong = append(wrong, fmt.Sprintf("card %s: %d of %d bytes, %d %%", id, g.vram[card], c.Status.VramBytes, g.share[card]))
		}
	}
	return wrong
}

// room names a place that has room for an instance that waits.
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
		if in.Spec.Vgpu == nil {
			return "node " + id
		}
		for card, c := range s.GPUs {
			have := api.GPUID(card)
			if c.Status.Node == node && g.vram[have]+in.Spec.Vgpu.VramBytes <= c.Status.VramBytes && g.share[have]+in.Spec.Vgpu.SharePercent <= 100 {
				return "card " + card
			}
		}
	}
	return ""
}
