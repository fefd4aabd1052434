package ovn_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// dump logs what has to be known when something has not come for so long that
// it never will: who has which port, which cards are up, which MACs are
// learned, how the switches carry what was sent last.
func (w *world) dump() {
	show := func(what string, argv ...string) {
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			out = fmt.Append(out, err)
		}
		w.t.Logf("%s:\n%s", what, out)
	}
	for _, table := range [][]string{
		{"Chassis", "_uuid,name"}, {"HA_Chassis", "_uuid,chassis,priority"}, {"MAC_Binding", "logical_port,ip,mac,timestamp"},
		{"Port_Binding", "logical_port,type,tunnel_key,datapath,chassis,up,ha_chassis_group"},
	} {
		show(table[0], "ovn-sbctl", "--db="+strings.Join(w.members(), ","), "--timeout=5", "--format=csv", "--data=bare", "--no-headings", "--columns="+table[1], "list", table[0])
	}
	show("neighbours on the wire", "ip", "-n", w.wire, "neigh")
	show("bridges of the wire", "bridge", "-n", w.wire, "fdb", "show", "dynamic")
	for _, n := range w.nodes {
		show(string(n.id)+" cards", "ip", "-n", n.ns, "-s", "-brief", "link")
		vswitch := filepath.Join(n.dir, "vswitchd.ctl")
		for _, ask := range []string{"bfd/show", "fdb/show bo", "dpctl/dump-flows -m --names", "dpctl/dump-conntrack"} {
			show(fmt.Sprint(n.id, " ", ask), append([]string{"ovs-appctl", "-t", vswitch}, strings.Fields(ask)...)...)
		}
		control, _ := filepath.Glob(filepath.Join(n.dir, "ovn-controller.*.ctl"))
		for _, path := range control {
			show(string(n.id)+" zones", "ovn-appctl", "-t", path, "ct-zone-list")
		}
	}
}

// complaints are the last warnings of every daemon.
func (w *world) complaints() {
	for name, d := range w.daemons {
		raw, _ := os.ReadFile(d.log.Name())
		lines := strings.Split(string(raw), "\n")
		for _, l := range lines[max(0, len(lines)-30):] {
			if strings.Contains(l, "|WARN|") || strings.Contains(l, "|ERR|") || strings.Contains(l, "|EMER|") {
				w.t.Logf("%s: %s", name, l)
			}
		}
	}
}
