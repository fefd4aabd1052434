package lease

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Opinions is a node's state of the paths to the others.
//
//	unknown ──success──► up ──3 misses in a row──► down ──success──► up
//	   └──────3 misses in a row──────────────────►┘
type Opinions struct {
	paths map[way]*wayState
}

// maxWays is the maximum number of paths that are stored.
const maxWays = 1 << 14

type way struct {
	node api.NodeID
	path string
}

type wayState struct {
	known, up bool
	misses    int
	at        Instant // of the last result
}

// Probed records the result of one probe.
func (o *Opinions) Probed(at Instant, node api.NodeID, path string, ok bool) {
	if o.paths == nil {
		o.paths = map[way]*wayState{}
	}
	w := way{node, path}
	s := o.paths[w]
	if s == nil {
		if len(o.paths) >= maxWays {
			return
		}
		s = &wayState{}
		o.paths[w] = s
	}
	s.at = at
	if ok {
		s.known, s.up, s.misses = true, true, 0
		return
	}
	if s.misses++; s.misses >= ProbeDown {
		s.known, s.up, s.misses = true, false, ProbeDown
	}
}

// Retain deletes every path for which keep returns false.
func (o *Opinions) Retain(keep func(node api.NodeID, path string) bool) {
	for w := range o.paths {
		if !keep(w.node, w.path) {
			delete(o.paths, w)
		}
	}
}

// Sights returns the current opinions in a fixed order. If they do not all fit in a
// heartbeat, only those of paths that are down are sent, because only they affect a
// verdict.
func (o *Opinions) Sights(now Instant) []Sight {
	var out []Sight
	for w, s := range o.paths {
		if s.known && now.Sub(s.at) <= OpinionAge {
			out = append(out, Sight{Node: w.node, Path: w.path, Up: s.up})
		}
	}
	if len(out) > maxSights {
		out = slices.DeleteFunc(out, func(s Sight) bool { return s.Up })
	}
	slices.SortFunc(out, func(a, b Sight) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Path, b.Path))
	})
	return out[:min(len(out), maxSights)]
}

// Reaches reports whether any path to the node is known to work.
func (o *Opinions) Reaches(node api.NodeID) bool {
	for w, s := range o.paths {
		if w.node == node && s.known && s.up {
			return true
		}
	}
	return false
}
