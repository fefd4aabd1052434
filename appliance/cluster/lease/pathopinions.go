package lease

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// PathOpinions is a node's state of the paths to the others.
//
//	unknown ──success──► up ──3 misses in a row──► down ──success──► up
//	   └──────3 misses in a row──────────────────►┘
type PathOpinions struct {
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
func (o *PathOpinions) Probed(at Instant, node api.NodeID, path string, ok bool) {
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
func (o *PathOpinions) Retain(keep func(node api.NodeID, path string) bool) {
	for w := range o.paths {
		if !keep(w.node, w.path) {
			delete(o.paths, w)
		}
	}
}

// Reports returns the current opinions in a fixed order. If they do not all fit in a
// heartbeat, only those of paths that are down are sent, because only they affect a
// verdict.
func (o *PathOpinions) Reports(now Instant) []PathReport {
	var out []PathReport
	for w, s := range o.paths {
		if s.known && now.Sub(s.at) <= OpinionAge {
			out = append(out, PathReport{Node: w.node, Path: w.path, Up: s.up})
		}
	}
	if len(out) > maxReports {
		out = slices.DeleteFunc(out, func(s PathReport) bool { return s.Up })
	}
	slices.SortFunc(out, func(a, b PathReport) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Path, b.Path))
	})
	return out[:min(len(out), maxReports)]
}

// Reaches reports whether any path to the node is known to work.
func (o *PathOpinions) Reaches(node api.NodeID) bool {
	for w, s := range o.paths {
		if w.node == node && s.known && s.up {
			return true
		}
	}
	return false
}
