package sdn

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestNestIsComparingAll checks that a nest finds the same overlaps as a
// comparison with all kept ranges.
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
				t.Fatalf("seed %d: %s overlaps a range of %q, want overlap %v with the kept %v", seed, p, who, overlaps, kept)
			}
			if !overlaps && p.IsValid() {
				n.record(p, fmt.Sprint(i))
				kept = append(kept, p)
			}
		}
	}
}

// manyNetworks returns n networks of one project, each on its router.
func manyNetworks(n int) Topology {
	t := Topology{Cluster: "basalt", Routers: []Router{{Project: "prj-1"}}}
	for i := range n {
		four := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		t.Networks = append(t.Networks, Network{ID: api.NetworkID(fmt.Sprintf("net-%05d", i)), Project: "prj-1", CIDR4: four, Gateway4: four.Addr().Next(), MTU: DefaultMTU})
	}
	return t
}

// BenchmarkCheck measures a check of the maximum number of networks.
func BenchmarkCheck(b *testing.B) {
	t := manyNetworks(MaxNetworks)
	for b.Loop() {
		if out, problems := t.Check(); len(out.Networks) != MaxNetworks || len(problems) > 0 {
			b.Fatalf("Check kept %d networks with problems %v, want %d and none", len(out.Networks), problems, MaxNetworks)
		}
	}
}

// TestNestLooksAFewTimes counts comparisons instead of measuring time: a few
// per range, regardless of their number, where comparing all with all takes as
// many per range as there are ranges.
func TestNestLooksAFewTimes(t *testing.T) {
	for name, at := range map[string]func(i int) netip.Prefix{
		"side by side": func(i int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		},
		"in each other": func(i int) netip.Prefix { // nested as deep as possible, repeatedly
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(10 + i>>12), byte(i >> 4), 0, 0}), 16+i&7).Masked()
		},
	} {
		for _, count := range []int{MaxNetworks / 16, MaxNetworks} {
			var all []netip.Prefix
			for i := range count {
				all = append(all, at(i))
			}
			n := newNest(all)
			for _, p := range all {
				if n.taken(p) == "" {
					n.record(p, p.String())
				}
			}
			// Fewer than one per range would mean that some are not counted.
			if each := float64(n.comparisons) / float64(count); each < 0.9 || each > 40 {
				t.Errorf("%s: %d ranges took %d comparisons, %.1f per range; want 0.9 to 40", name, count, n.comparisons, each)
			}
		}
	}
}

// TestCheckLooksAFewTimes checks that a check of the maximum number of
// networks compares them by nests alone.
func TestCheckLooksAFewTimes(t *testing.T) {
	in := manyNetworks(MaxNetworks)
	c := &checker{in: in}
	c.nest()
	made := 0
	for _, n := range c.routed {
		made += n.comparisons
	}
	if made < MaxNetworks-1 || made > 4*MaxNetworks {
		t.Errorf("nests of %d networks took %d comparisons, want %d to %d", MaxNetworks, made, MaxNetworks-1, 4*MaxNetworks)
	}
}
