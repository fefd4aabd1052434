package ovn

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/nb"
)

// TestLeaks checks that rows with Basalt's mark that belong to no present
// object are listed, that wanted rows and other programs' rows are not, and
// that Apply removes the listed ones.
func TestLeaks(t *testing.T) {
	c, endpoint := controller(t)
	topology := crowd(2, 3)
	apply(t, c, topology)
	list := func(topology sdn.Topology) []api.Leak {
		t.Helper()
		all, err := c.Leaks(t.Context(), topology)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := list(topology); len(got) != 0 {
		t.Errorf("Leaks after Apply = %+v, want none", got)
	}
	nbctl := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ovn-nbctl", append([]string{"--db=" + endpoint, "--no-leader-only", "--timeout=20"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("ovn-nbctl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	marks := func(of string) []string { return []string{"external_ids:basalt=c1", "external_ids:basalt-of=" + of} }
	with := func(args []string, more ...string) []string { return append(args, more...) }
	nbctl(with([]string{"ls-add", "net-gone", "--", "set", "Logical_Switch", "net-gone"}, marks("net-gone")...)...)
	for _, port := range []string{"port-ins-gone-0", "port-ins-gone-1"} { // in a wanted switch
		nbctl(with([]string{"lsp-add", "net-0000", port, "--", "set", "Logical_Switch_Port", port}, marks("ins-gone")...)...)
	}
	nbctl("create", "Address_Set", "name=of_nothing", "external_ids:basalt=c1")
	nbctl("ls-add", "theirs", "--", "lsp-add", "theirs", "their-port", "--", "set", "Logical_Switch", "theirs", "external_ids:basalt=another")
	want := []string{
		"Instance ins-gone in OVN: 2 rows of Logical_Switch_Port",
		"Network net-gone in OVN: Logical_Switch net-gone",
		"OVN UUID in OVN: Address_Set of_nothing",
	}
	seen := func() (got []string) {
		for _, l := range list(topology) {
			if api.Kind(l.Kind) == api.KindOVN {
				l.ID = "UUID"
			}
			got = append(got, l.Kind+" "+l.ID+" "+l.What)
		}
		return got
	}
	if err := c.nb.until(t.Context(), "the manually added rows", func() (bool, error) { return len(seen()) == len(want), nil }); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, l := range seen() {
		got[l] = true
	}
	for _, l := range want {
		if !got[l] {
			t.Errorf("Leaks = %v, want %q in it", got, l)
		}
	}

	apply(t, c, topology)
	if got := list(topology); len(got) != 0 {
		t.Errorf("Leaks after another Apply = %+v, want none", got)
	}
	if n := count(t, c, nb.LogicalSwitchTable); n != 2+1+1 { // also the external network's, and theirs
		t.Errorf("database has %d logical switches, want %d", n, 2+1+1)
	}
	// For a cluster without objects all rows are leaks, except those that every
	// cluster has.
	all := map[string]bool{}
	for _, l := range list(sdn.Topology{Cluster: "c1"}) {
		all[l.ID] = true
	}
	for _, id := range []string{"net-0000", "net-0001", "prj-0000", "sg-0001", "ext-1", "ins-00000000"} {
		if !all[id] {
			t.Errorf("Leaks of a cluster without objects = %v, want %s in it", all, id)
		}
	}
	if _, err := c.Leaks(t.Context(), sdn.Topology{}); err == nil {
		t.Error("Leaks without a cluster = nil, want an error")
	}
}
