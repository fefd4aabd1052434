package ovn_test

import (
	"path/filepath"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
)

// dump saves what explains why an expected event did not occur: which ports
// are on which chassis, which cards are up, which MACs are learned, and how
// the switches forwarded the last packets.
func (w *world) dump(f failed.Folder) {
	f.Files(w.path("*.log"))
	for _, db := range []string{"nb", "sb"} {
		name := map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"}[db]
		f.Output(db+".txt", "ovsdb-client", "--timeout=10", "dump", strings.Join(w.members(), ","), name)
	}
	f.Output("wire-neighbours.txt", "ip", "-n", w.wire, "neigh")
	f.Output("wire-bridges.txt", "bridge", "-n", w.wire, "fdb", "show", "dynamic")
	for _, n := range w.nodes {
		name := func(what string) string { return string(n.id) + "-" + strings.ReplaceAll(what, "/", "-") + ".txt" }
		f.Output(name("links"), "ip", "-n", n.ns, "-details", "-statistics", "address", "show")
		vswitch := filepath.Join(n.dir, "vswitchd.ctl")
		for _, ask := range []string{"bfd/show", "fdb/show bo", "dpif/show", "tnl/neigh/show", "ovs/route/show", "dpctl/dump-flows -m --names", "dpctl/dump-conntrack"} {
			words := strings.Fields(ask)
			f.Output(name(words[0]), append([]string{"ovs-appctl", "--timeout=10", "-t", vswitch}, words...)...)
		}
		f.Output(name("flows"), "ovs-ofctl", "--timeout=10", "dump-flows", filepath.Join(n.dir, "br-int.mgmt"))
		f.Output(name("ovs"), "ovsdb-client", "--timeout=10", "dump", "unix:"+filepath.Join(n.dir, "db.sock"))
		control, _ := filepath.Glob(filepath.Join(n.dir, "ovn-controller.*.ctl"))
		for _, path := range control {
			f.Output(name("zones"), "ovn-appctl", "-t", path, "ct-zone-list")
		}
	}
}
