package wireguard

import (
	"reflect"
	"slices"
)

// Decide returns the next state: s itself, or one that is a step nearer to what is
// wanted. nodes are the reports of all nodes that are not lost, by ID; of a node that
// has not reported, the zero Report. Nodes that are lost carry out the state that they
// find when they return.
func Decide(s State, w Wanted, nodes map[string]Report) State {
	next := decide(s, w, nodes)
	if !reflect.DeepEqual(next, s) {
		next.Serial++
	}
	return next
}

func decide(s State, w Wanted, nodes map[string]Report) State {
	switch {
	case !w.On:
		return leave(s, nodes)
	case !s.On():
		return begin(s, w)
	case s.Send != s.Generation:
		if ready(s.Generation, nodes) {
			s.Send = s.Generation
		}
	case !s.Enforced || len(s.Keys) > 1:
		if all(s, nodes, func(r Report) bool { return r.Send == s.Send }) {
			s.Enforced, s.Keys = true, []int{s.Send}
		}
	case s.Rotation != w.Rotation:
		return begin(s, w)
	}
	return s
}

// begin adds a generation of keys.
func begin(s State, w Wanted) State {
	s.Generation++
	s.Rotation = w.Rotation
	s.Keys = append(slices.Clone(s.Keys), s.Generation)
	return s
}

// leave returns the next state on the way to off: plain packets must be accepted
// everywhere before a node sends one, and nobody may use an interface that is removed.
func leave(s State, nodes map[string]Report) State {
	switch {
	case s.Enforced:
		s.Enforced = false
	case s.Send != 0:
		if all(s, nodes, func(r Report) bool { return !r.Enforced }) {
			s.Send = 0
		}
	case s.On():
		if all(s, nodes, func(r Report) bool { return r.Send == 0 }) {
			s.Keys = nil
		}
	}
	return s
}

// ready reports whether all nodes have keys of the generation, and packets encrypted with
// them have arrived from every node at every other.
func ready(generation int, nodes map[string]Report) bool {
	for id, r := range nodes {
		k, ok := r.Key(generation)
		if !ok || r.Problem != "" {
			return false
		}
		for other := range nodes {
			if other != id && !slices.Contains(k.Connected, other) {
				return false
			}
		}
	}
	return true
}

// all reports whether all nodes have carried out the state s, and its results are as
// given. A report about an earlier state may be about the same generation, which was left
// and entered again. A node without an address has carried out nothing, or has no tunnels.
func all(s State, nodes map[string]Report, has func(Report) bool) bool {
	for _, r := range nodes {
		if r.Address.IsValid() && (r.Serial != s.Serial || !has(r)) {
			return false
		}
	}
	return true
}
