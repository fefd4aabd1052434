package main

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestAnotherStays: nodes that all shut down do not transfer the leadership among them.
func TestAnotherStays(t *testing.T) {
	node := func(state api.NodeState, leaving bool) api.Node {
		return api.Node{Assignment: api.NodeAssignment{State: state}, Status: api.NodeStatus{ShuttingDown: leaving}}
	}
	for name, c := range map[string]struct {
		others map[string]api.Node
		want   bool
	}{
		"alone":                  {map[string]api.Node{}, false},
		"one is there":           {map[string]api.Node{"b": node(api.NodeReady, false), "c": node(api.NodeReady, true)}, true},
		"all go down":            {map[string]api.Node{"b": node(api.NodeReady, true), "c": node(api.NodeReady, true)}, false},
		"the other is not heard": {map[string]api.Node{"b": node(api.NodeSuspect, false), "c": node(api.NodeLost, false)}, false},
	} {
		c.others["a"] = node(api.NodeReady, false)
		if got := anotherStays(c.others, "a"); got != c.want {
			t.Errorf("%s: anotherStays = %v, want %v", name, got, c.want)
		}
	}
}
