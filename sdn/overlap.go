package sdn

import (
	"cmp"
	"net/netip"
	"slices"
)

// nest finds which of many ranges overlap. Two ranges of addresses overlap only
// when one contains the other, so the ranges form a tree, which is made of all of
// them at once; afterwards each is kept or refused in whichever order. Making it
// takes n log n steps, and a question as many as ranges can contain each other
// (33, or 129).
type nest struct {
	nodes map[netip.Prefix]*nested
	looks int // at a range, for another one: what the time it takes is made of
}

type nested struct {
	within *nested // the smallest range around it; nil: none
	kept   string  // who has it
	inside string  // who has a range in it
}

// newNest is made of every range that will be asked about; invalid ones count for
// nothing.
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
	var around []open // that may contain the next one, the widest first
	for _, p := range slices.Compact(all) {
		for len(around) > 0 {
			if n.looks++; around[len(around)-1].p.Overlaps(p) {
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

// taken is who has a range that overlaps p; empty: nobody.
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
		if n.looks++; at.kept != "" {
			return at.kept
		}
	}
	return ""
}

// keep p, which nobody's range overlaps, for who.
func (n *nest) keep(p netip.Prefix, who string) {
	if n == nil || !p.IsValid() {
		return
	}
	at := n.nodes[p.Masked()]
	if at == nil {
		return
	}
	at.kept = who
	for at = at.within; at != nil && at.inside == ""; at = at.within {
		n.looks++
		at.inside = who
	}
}
