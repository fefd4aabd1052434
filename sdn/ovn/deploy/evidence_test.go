package deploy

import (
	"path/filepath"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
)

// evidence saves what explains a failure of the cluster: each node's links,
// its switch's ports, routes and flows, the content of OVN's databases, and
// the daemons' logs.
func (s *site) evidence(f failed.Folder) {
	f.Files(filepath.Join(s.dir, "*/log/*.log"))
	f.Output("switch-links.txt", "ip", "-n", s.prefix+"-sw", "-details", "-statistics", "link", "show")
	for _, n := range s.all {
		n.evidence(f)
	}
}

func (n *testNode) evidence(f failed.Folder) {
	run := n.config.Paths
	f.Output(n.id+"-links.txt", "ip", "-n", n.ns, "-details", "-statistics", "address", "show")
	f.Output(n.id+"-neighbours.txt", "ip", "-n", n.ns, "neighbour", "show")
	f.Output(n.id+"-routes.txt", "ip", "-n", n.ns, "route", "show", "table", "all")
	vswitchd := func(name string, args ...string) {
		f.Output(n.id+"-"+name+".txt", append([]string{"ovs-appctl", "--timeout=10", "-t", run.OVSRun + "/ovs-vswitchd.ctl"}, args...)...)
	}
	vswitchd("ports", "dpif/show")
	vswitchd("datapath-flows", "dpctl/dump-flows", "-m", "netdev@ovs-netdev")
	vswitchd("tunnel-neighbours", "tnl/neigh/show")
	vswitchd("tunnel-ports", "tnl/ports/show", "-v")
	vswitchd("switch-routes", "ovs/route/show")
	vswitchd("conntrack", "dpctl/dump-conntrack", "netdev@ovs-netdev")
	vswitchd("counters", "coverage/show")
	vswitchd("underlay-macs", "fdb/show", Underlay)
	for _, from := range []string{"pa", "pb"} {
		to := map[string]string{"pa": "2", "pb": "1"}[from]
		own := map[string]string{"pa": "1", "pb": "2"}[from]
		vswitchd("trace-of-"+from, "ofproto/trace", Integration, "in_port="+from+",tcp,dl_src=02:00:00:00:00:0"+own+",dl_dst=02:00:00:00:00:0"+to+
			",nw_src=10.98.0."+own+",nw_dst=10.98.0."+to+",nw_ttl=64,tcp_src=40000,tcp_dst=40000")
	}
	f.Output(n.id+"-vsctl.txt", "ovs-vsctl", "--db=unix:"+run.OVSRun+"/db.sock", "--timeout=10", "show")
	f.Output(n.id+"-ovs-db.txt", "ovsdb-client", "--timeout=10", "dump", "unix:"+run.OVSRun+"/db.sock")
	f.Output(n.id+"-flows.txt", "ovs-ofctl", "--timeout=10", "dump-flows", run.OVSRun+"/"+Integration+".mgmt")
	for _, d := range DBs {
		f.Output(n.id+"-"+string(d)+"-status.txt", "ovs-appctl", "--timeout=10", "-t", control(run.Run, d), "cluster/status", d.schemaName())
		f.Output(n.id+"-"+string(d)+".txt", "ovsdb-client", "--timeout=10", "dump", "unix:"+socket(run.Run, d), d.schemaName())
	}
}
