package ovn

import (
	"strconv"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// TestConnectionsAreLimited checks that the connections of every guest's port
// and of every router are limited, also in an isolated network and on a branch
// of a router, so that one guest cannot fill its node's table
// (nf_conntrack_max, 262,144 on a node of 4 GiB).
func TestConnectionsAreLimited(t *testing.T) {
	top := crowd(2, 2)
	top.Networks[1].Isolated = true
	top.Routers = top.Routers[:1]
	lab := top.External[0]
	lab.ID, lab.Physical = "ext-2", "lab"
	top.External = append(top.External, lab)
	top.Branches = []sdn.Router{{Project: top.Routers[0].Project, External: lab.ID, Address4: top.Routers[0].Address4}}
	if _, problems := top.Check(); len(problems) > 0 {
		t.Fatalf("Check of the test's topology = %+v, want no problems", problems)
	}
	const table = 262_144
	limited := func(what string, options map[string]string, most int) {
		t.Helper()
		if n, err := strconv.Atoi(options["ct-zone-limit"]); err != nil || n < 1024 || n > most {
			t.Errorf("%s: ct-zone-limit is %q, want 1024 to %d", what, options["ct-zone-limit"], most)
		}
	}
	switches, routers := 0, 0
	for _, u := range rows(top) {
		switch m := u.root.(type) {
		case *nb.LogicalSwitch:
			for _, n := range top.Networks {
				if m.Name == SwitchName(n.ID) {
					switches++
					limited("network "+string(n.ID), m.OtherConfig, table/4)
				}
			}
		case *nb.LogicalRouter:
			routers++
			limited("router "+m.Name, m.Options, table/2)
		}
	}
	if switches != 2 || routers != 2 {
		t.Errorf("%d networks and %d routers were checked, want 2 and 2", switches, routers)
	}
	if got := text(rows(top)); !strings.Contains(got, BranchName(top.Routers[0].Project, lab.ID)) {
		t.Errorf("rows without a branch, want %s:\n%s", BranchName(top.Routers[0].Project, lab.ID), got)
	}
}
