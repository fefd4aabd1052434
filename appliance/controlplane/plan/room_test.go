package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// What PendingReason returns for an instance that does not exist yet is what the plan does once
// it exists: it is placed, or pending with that reason.
func TestPendingReasonMatchesPlan(t *testing.T) {
	placed, waits := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		s, f := cluster(), cluster().Flavors["flv-1"]
		f.Spec.RootBytes = int64(random.IntN(3)) * 7 * gib
		s.Flavors["flv-1"] = f
		for n := range 1 + random.IntN(3) {
			node := api.NodeID(fmt.Sprint("n", n))
			s.node(string(node), int64(1+random.IntN(12))*gib)
			s.limitDisk(string(node), int64(random.IntN(60))*gib)
			for g := range random.IntN(3) {
				s.gpu(fmt.Sprintf("%s-g%d", node, g), node, int64(4+4*random.IntN(5))*gib)
			}
		}
		for i := range 12 {
			id, vram, share := fmt.Sprint("i", i), int64(random.IntN(12))*gib, int64(random.IntN(101)) // no VRAM: no vGPU
			after := cluster().instance(id, "flv-1", vram, share)
			why := PendingReason(s, after.Instances[id], now).Text
			s.instance(id, "flv-1", vram, share).created(id, i)
			settle(t, s)
			a := s.Instances[id].Assignment
			if (why == "") != (a.Node != "") || why != a.Reason {
				t.Fatalf("seed %d, instance %s: PendingReason = %q, but its assignment is %+v", seed, id, why, a)
			}
			if why == "" {
				placed++
			} else {
				waits++
			}
		}
	}
	if placed < 100 || waits < 100 {
		t.Errorf("%d instances were placed and %d are pending, want at least 100 of each", placed, waits)
	}
}

func TestPendingWithoutAddress(t *testing.T) {
	s := cluster().node("n1", 8*gib)
	in := cluster().instance("i1", "flv-1", 0, 0).Instances["i1"]
	in.Spec.Networks = []api.InstanceNetwork{{Network: "net-gone"}}
	if why := PendingReason(s, in, now); why.Cause.Code != api.CauseNetworkNotReady || !why.Cause.Plain {
		t.Error("PendingReason for an instance in a network that does not exist = " + why.Text + ", want that the network is not ready")
	}
	if in.Spec.Networks = nil; PendingReason(s, in, now) != (api.Reason{}) {
		t.Errorf("PendingReason for an instance without a network = %+v, want none", PendingReason(s, in, now))
	}
}
