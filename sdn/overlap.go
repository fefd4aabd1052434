package sdn

import (
	"cmp"
	"net/netip"
	"slices"
)

// nest finds overlaps among many ranges. Two address ranges overlap only if
// one contains the other, so the ranges form a tree, which is built from all
// of them at once; afterwards each is kept or rejected in any order. Building
// it takes O(n log n) steps, and a query at most as many as ranges can contain
// each other (33, or 129).
type nest struct {
	nodes       map[netip.Prefix]*nested
	comparisons int // number of comparisons of two ranges, which determine the run time
}

type nested struct {
	within *nested // the smallest range that contains it; nil: none
	kept   string  // owner of the range
	inside string  // owner of a range in it
}

// newNest builds a nest of every range that will be queried; invalid ones are
// ignored.
func newNest(all []netip.Prefix) *nest {
	all = slices.DeleteFunc(slices.Clone(all), func(p netip.Prefix) bool { return !p.IsValid() })
	for i, p := range all {
		all[i] = p.Masked()
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits()) })
	n := &nest{nodes: make(map[netip.Prefix]*nested, len(all))}
	type open struct {
		p netip.Prefix
		n *nested
	}
	var around []open // ranges that may contain the next one, the widest first
	for _, p := range slices.Compact(all) {
		for len(around) > 0 {
			if n.comparisons++; around[len(around)-1].p.Overlaps(p) {
				break
			}
			around = around[:len(around)-1]
		}
		one := &nested{}
		if len(around) > 0 {
			one.within = around[len(around)-1].n
		}
		n.nodes[p] = one
		around = append(around, open{p, one})
	}
	return n
}

// taken returns the owner of a range that overlaps p; empty if there is none.
func (n *nest) taken(p netip.Prefix) string {
	if n == nil || !p.IsValid() {
		return ""
	}
	at := n.nodes[p.Masked()]
	if at == nil {
		return ""
	}
	if at.inside != "" {
		return at.inside
	}
	for ; at != nil; at = at.within {
		if n.comparisons++; at.kept != "" {
			return at.kept
		}
	}
	return ""
}

// record records who as the owner of p, which must not overlap any kept range.
func (n *nest) record(p netip.Prefix, who string) {
	if n == nil || !p.IsValid() {
		return
	}
	at := n.nodes[p.Masked()]
	if at == nil {
		return
	}
	at.kept = who
	for at = at.within; at != nil && at.inside == ""; at = at.within {
		n.comparisons++
		at.inside = who
	}
}
