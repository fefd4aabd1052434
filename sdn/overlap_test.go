package sdn

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// A nest says of every range what comparing it with all that are kept says.
func TestNestIsComparingAll(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []netip.Prefix
		for range 60 {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(r.IntN(4)), byte(r.IntN(256)), byte(r.IntN(256))}), 8+r.IntN(22)))
		}
		all = append(all, netip.Prefix{})
		n := newNest(all)
		var kept []netip.Prefix
		for i, p := range all {
			overlaps := false
			for _, k := range kept {
				overlaps = overlaps || p.IsValid() && k.Overlaps(p)
			}
			if who := n.taken(p); (who != "") != overlaps {
				t.Fatalf("seed %d: %s overlaps %q, kept are %v", seed, p, who, kept)
			}
			if !overlaps && p.IsValid() {
				n.keep(p, fmt.Sprint(i))
				kept = append(kept, p)
			}
		}
	}
}

// manyNetworks of one project, each on its router.
func manyNetworks(n int) Topology {
	t := Topology{Cluster: "basalt", Routers: []Router{{Project: "prj-1"}}}
	for i := range n {
		four := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		t.Networks = append(t.Networks, Network{ID: api.NetworkID(fmt.Sprintf("net-%05d", i)), Project: "prj-1", CIDR4: four, Gateway4: four.Addr().Next(), MTU: DefaultMTU})
	}
	return t
}

// As many networks as there may be are checked by looking at each a few times.
func BenchmarkCheck(b *testing.B) {
	t := manyNetworks(MaxNetworks)
	for b.Loop() {
		if out, problems := t.Check(); len(out.Networks) != MaxNetworks || len(problems) > 0 {
			b.Fatalf("%d networks of %d, problems %v", len(out.Networks), MaxNetworks, problems)
		}
	}
}
