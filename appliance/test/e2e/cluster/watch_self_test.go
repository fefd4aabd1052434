package cluster_test

import "testing"

// TestMigrates checks the rule by which the watch recognizes the two ends of a migration.
func TestMigrates(t *testing.T) {
	old := machine{pid: 1, started: "900", node: 1}
	for what, c := range map[string]struct {
		all  []machine
		want bool
	}{
		"a target":                    {[]machine{old, {pid: 2, started: "1000", node: 2, incoming: true}}, true},
		"listed the other way":        {[]machine{{pid: 2, started: "1000", node: 2, incoming: true}, old}, true},
		"one that was started to run": {[]machine{{pid: 1, started: "900", node: 1, incoming: true}, {pid: 2, started: "1000", node: 2}}, false},
		"beside a frozen one":         {[]machine{{pid: 1, started: "900", node: 1, stopped: true}, {pid: 2, started: "1000", node: 2, incoming: true}}, false},
		"on one node":                 {[]machine{old, {pid: 2, started: "1000", node: 1, incoming: true}}, false},
		"three":                       {[]machine{old, {pid: 2, started: "1000", node: 2, incoming: true}, {pid: 3, started: "1001", node: 3, incoming: true}}, false},
	} {
		if got := migrates(c.all); got != c.want {
			t.Errorf("migrates(%s) = %v, want %v", what, got, c.want)
		}
	}
}
