package main

import (
	"testing"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// TestSpared: a node's copy is refused only if the others have a majority without its vote.
func TestSpared(t *testing.T) {
	voter := func(id string) store.Member { return store.Member{ID: id, Voter: true} }
	part := state.Part{}
	for name, c := range map[string]struct {
		members   []store.Member
		compared  map[string]state.Part
		different []string
		want      bool
	}{
		"all alike":            {[]store.Member{voter("a"), voter("b")}, map[string]state.Part{"a": part}, nil, true},
		"one of three":         {[]store.Member{voter("a"), voter("b"), voter("c")}, map[string]state.Part{"a": part, "b": part, "c": part}, []string{"c"}, true},
		"one has no vote":      {[]store.Member{voter("a"), {ID: "b"}, {ID: "c"}}, map[string]state.Part{"a": part, "b": part, "c": part}, []string{"c"}, true},
		"rebuilt, not a voter": {[]store.Member{voter("a"), {ID: "b"}, voter("c")}, map[string]state.Part{"a": part, "b": part, "c": part}, []string{"c"}, false},
		"who leads differs":    {[]store.Member{voter("a"), {ID: "b"}, {ID: "c"}}, map[string]state.Part{"a": part, "b": part, "c": part}, []string{"a"}, false},
		"another is away":      {[]store.Member{voter("a"), voter("b"), voter("c"), {ID: "d"}}, map[string]state.Part{"a": part, "c": part, "d": part}, []string{"c"}, false},
	} {
		if got := spared(c.members, c.compared, c.different); got != c.want {
			t.Errorf("%s: spared = %v, want %v", name, got, c.want)
		}
	}
}
