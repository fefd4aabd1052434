package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// splitKept is how long a part without a majority is reported after it was last found: all
// tables are compared within a day, even after a change of the leader.
const splitKept = 48 * time.Hour

// splits are the parts of the tables for which a leader has found that no majority of the nodes
// has the same content. The node that was the leader reports them, as a condition of its own,
// until it finds that the part has a majority, or another leader has had enough time to compare
// it.
type splits struct {
	mu  sync.Mutex // guards all
	all []split    // in the order of their places, at most maxSplits
}

const maxSplits = 64

type split struct {
	from   state.Place
	groups string // names of the nodes, grouped by content
	index  uint64 // entry of the log
	at     time.Time
}

// add records a part, or that it still has no majority.
func (s *splits) add(x split) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(old split) bool { return old.from.Compare(x.from) == 0 })
	if len(s.all) >= maxSplits { // enough are reported
		return
	}
	s.all = append(s.all, x)
	slices.SortFunc(s.all, func(a, b split) int { return a.from.Compare(b.from) })
}

// agreed removes the parts that begin at or after from and before next. The zero Place as next
// is the end of the tables.
func (s *splits) agreed(from, next state.Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(x split) bool {
		return x.from.Compare(from) >= 0 && (next.Bucket == "" || x.from.Compare(next) < 0)
	})
}

// first returns the beginning of the first part.
func (s *splits) first(now time.Time) (from state.Place, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(x split) bool { return now.Sub(x.at) > splitKept })
	if len(s.all) == 0 {
		return from, false
	}
	return s.all[0].from, true
}

// why returns an error that names the nodes that differ, or nil if none are known to.
func (s *splits) why(now time.Time) error {
	if _, ok := s.first(now); !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return nil
	}
	x := s.all[0]
	return fmt.Errorf("%s; seen from %v on, at entry %d of the log", x.groups, x.from, x.index)
}

// parties groups the names of the nodes by their content.
func parties(all map[string]state.Part, names map[string]string) string {
	same := map[string][]string{}
	for id, p := range all {
		same[string(p.Sum)] = append(same[string(p.Sum)], cmp.Or(names[id], id))
	}
	var groups []string
	for _, nodes := range same {
		slices.Sort(nodes)
		groups = append(groups, strings.Join(nodes, " and "))
	}
	slices.Sort(groups)
	return strings.Join(groups, " differs from ")
}

// names returns the nodes' names by ID.
func (cl *cluster) names() map[string]string {
	out := map[string]string{}
	for _, n := range cl.directory.Nodes() {
		out[n.Meta.ID] = n.Meta.Name
	}
	return out
}

// agreement implements the agent's Options.Agreement: api.ConditionAgreement.
func (cl *cluster) agreement() error { return cl.splits.why(time.Now()) }
