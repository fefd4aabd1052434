package metadata

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestManyNetworksOfOneProject checks that a project with more networks on a
// node than it can serve displaces neither others' networks nor its own
// running ones.
func TestManyNetworksOfOneProject(t *testing.T) {
	var all []Network
	for i := range 2 * MaxNetworks {
		all = append(all, Network{ID: api.NetworkID(fmt.Sprintf("net-a-%04d", i)), Project: "prj-greedy"})
	}
	for i := range 3 {
		all = append(all, Network{ID: api.NetworkID(fmt.Sprintf("net-z-%d", i)), Project: "prj-modest"})
	}
	last := api.NetworkID(fmt.Sprintf("net-a-%04d", 2*MaxNetworks-1))
	answered, left := share(all, func(id api.NetworkID) bool { return id == last }, MaxNetworks)
	if len(answered) != MaxNetworks || len(answered)+len(left) != len(all) {
		t.Fatalf("%d networks served and %d left out, of %d; want %d served", len(answered), len(left), len(all), MaxNetworks)
	}
	for _, n := range left {
		if n.Project != "prj-greedy" {
			t.Errorf("network %s of %s is left out, want only networks of prj-greedy", n.ID, n.Project)
		}
		if n.ID == last {
			t.Errorf("network %s, which is running already, is left out, want it served", n.ID)
		}
	}
	for i, n := range answered[6:] {
		if n.Project != "prj-greedy" {
			t.Errorf("network %d to start is %s of the small project, want it among the first 6", i+6, n.ID)
		}
	}
	if answered, left := share(all[:2], func(api.NetworkID) bool { return false }, MaxNetworks); len(answered) != 2 || len(left) != 0 {
		t.Errorf("of two networks %d are served and %d left out, want 2 and 0", len(answered), len(left))
	}
}
