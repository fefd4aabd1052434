package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// Count returns how many instances the planner places, one after the other, before one
// is pending: on random clusters with instances, overcommitted pools, limits of vGPUs,
// GPUs of several models and unschedulable nodes.
func TestCountIsWhatIsPlaced(t *testing.T) {
	placed := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(22, seed))
		s := cluster()
		s.Flavors["flv-1"] = api.Flavor{Meta: api.Meta{ID: "flv-1", Name: "small"}, Spec: api.FlavorSpec{Vcpus: r.Int64N(3), MemoryBytes: (1 + r.Int64N(4)) * gib / 2, RootBytes: r.Int64N(3) * 10 * gib, HugePages: []api.HugePages{"", "", api.HugePages2Mi, api.HugePages1Gi}[r.IntN(4)]}}
		s.Pools["pool-1"] = api.GPUPool{Meta: api.Meta{ID: "pool-1", Name: "default"}, Spec: api.GPUPoolSpec{VramOvercommitPercent: 100 + 50*r.Int64N(3), MaxVgpusPerGpu: r.Int64N(5)}}
		for n := range 1 + r.IntN(3) {
			id := api.NodeID(fmt.Sprint("n", n))
			s.node(string(id), (1+r.Int64N(40))*gib)
			node := s.Nodes[string(id)]
			node.Spec.Unschedulable = r.IntN(6) == 0
			for _, size := range api.AllHugePages {
				if r.IntN(3) > 0 {
					node.Status.HugePages = append(node.Status.HugePages, api.NodeHugePages{Size: size, TotalBytes: r.Int64N(20) * gib})
				}
			}
			if r.IntN(2) == 0 {
				node.Status.Pools = []api.StoragePool{{Name: "local", SizeBytes: 100 * gib, FreeBytes: r.Int64N(5) * gib, ReserveBytes: gib, LimitBytes: r.Int64N(200) * gib, ImageBytes: r.Int64N(10) * gib}}
			}
			if r.IntN(6) == 0 {
				node.Status.Pools = append(node.Status.Pools, api.StoragePool{Name: "shared", ID: "p", Shared: true})
			}
			s.Nodes[string(id)] = node
			for g := range r.IntN(4) {
				gpu := fmt.Sprintf("%s-g%d", id, g)
				s.gpu(gpu, id, (4+4*r.Int64N(5))*gib)
				card := s.GPUs[gpu]
				card.Status.Model, card.Spec.Unschedulable = fmt.Sprint("model ", r.IntN(2)), r.IntN(6) == 0
				s.GPUs[gpu] = card
			}
		}
		for i := range r.IntN(6) {
			s.instance(fmt.Sprint("old", i), "flv-1", r.Int64N(6)*gib, r.Int64N(60))
		}
		settle(t, s)
		var vgpu *api.VGPUSpec
		if r.IntN(4) > 0 {
			vgpu = &api.VGPUSpec{VramBytes: (1 + r.Int64N(8)) * gib, SharePercent: r.Int64N(101)}
			if r.IntN(2) == 0 {
				vgpu.Model = "model 1"
			}
		}
		in := api.Instance{Meta: api.Meta{ID: "new"}, Spec: api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Vgpu: vgpu}}
		w := wants(s.Flavors["flv-1"], in)
		got := Count(s, RoomOf(s, now), in, w, now)
		u := usage(s)
		u.reserveHeads(s, "", now)
		want, nodes := int64(0), map[api.NodeID]bool{}
		for {
			a := place(s, u, in, now)
			if a.Node == "" {
				break
			}
			if vgpu != nil && vgpu.Model != "" && s.GPUs[string(a.Gpu)].Status.Model != vgpu.Model {
				t.Fatalf("seed %d: GPU %s is a %s, want %s", seed, a.Gpu, s.GPUs[string(a.Gpu)].Status.Model, vgpu.Model)
			}
			u.add(s, in, a)
			nodes[a.Node] = true
			want++
		}
		if got.Count != want || got.Nodes != int64(len(nodes)) {
			t.Fatalf("seed %d: Count = %+v, want %d on %d nodes as the planner places", seed, got, want, len(nodes))
		}
		placed += int(want)
	}
	if placed < 300 {
		t.Errorf("instances placed in all rounds = %d, want at least 300", placed)
	}
}
