package metadata

import (
	"fmt"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// One project with more networks on a node than it can answer does not take the
// place of others, nor of its own that are answered.
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
		t.Fatalf("%d networks answered and %d left out, of %d; want %d answered", len(answered), len(left), len(all), MaxNetworks)
	}
	for _, n := range left {
		if n.Project != "prj-greedy" {
			t.Errorf("network %s of %s is left out, which has three", n.ID, n.Project)
		}
		if n.ID == last {
			t.Errorf("network %s, which is answered already, is left out", n.ID)
		}
	}
	for i, n := range answered[6:] {
		if n.Project != "prj-greedy" {
			t.Errorf("network %s of the small project is made as the %dth", n.ID, i+6)
		}
	}
	if answered, left := share(all[:2], func(api.NetworkID) bool { return false }, MaxNetworks); len(answered) != 2 || len(left) != 0 {
		t.Errorf("of two networks %d are answered and %d left out", len(answered), len(left))
	}
}
