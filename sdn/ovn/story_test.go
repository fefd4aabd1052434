package ovn_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/drivertest"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// TestStory runs all parts on one OVN, which takes long to start. Each part
// restores the topology.
func TestStory(t *testing.T) {
	began := time.Now()
	w := newWorld(t)
	w.apply(t, sdn.Topology{Cluster: "story"}) // waits until the databases have their leaders
	t.Run("conformance", func(t *testing.T) {
		all := map[api.NodeID]sdn.Chassis{}
		for _, n := range w.nodes {
			all[n.id] = w.chassisOf(n, time.Second) // without traffic counts need not settle
		}
		drivertest.Run(t, drivertest.Network{Cluster: "story", Controller: w.control, Chassis: all, First: "n1", Second: "n2"})
	})
	t.Run("plugs", func(t *testing.T) { plugs(t, w.nodes[0]) })
	topology := story()
	w.apply(t, topology)
	t.Logf("OVN has the topology after %v", time.Since(began).Round(time.Millisecond))

	g := map[string]*guest{}
	for _, n := range []string{"a", "b", "c", "d", "x"} {
		p := portOf(topology, n)
		on := slices.IndexFunc(w.nodes, func(x *node) bool { return x.id == p.Nodes[0] })
		g[n] = w.boot(t, w.nodes[on], p)
	}
	t.Logf("five guests after %v", time.Since(began).Round(time.Millisecond))
	part := func(name string, f func(t *testing.T)) {
		outer := w.t
		t.Run(name, func(t *testing.T) {
			w.t = t // so that errors are reported for this part
			defer func() { w.t = outer }()
			f(t)
		})
	}
	part("leases", func(t *testing.T) { leases(t, g["a"], networkOf(topology, "net-red1")) })
	for _, x := range g {
		x.address(t, networkOf(topology, x.port.Network))
		x.serve(t, 80)
		x.serve(t, 81)
	}
	serve(t, w.wire, "203.0.113.2:80", "host")
	serve(t, w.wire, "203.0.113.1:6641", "control plane")
	serve(t, w.wire, "172.31.7.254:22", "host inside")

	part("reach", func(t *testing.T) { reaches(t, w, g) })
	part("security groups", func(t *testing.T) { securityGroups(t, w, g, topology) })
	part("DHCP is no way out", func(t *testing.T) { questions(t, w, g, topology) })
	part("hosts", func(t *testing.T) { hosts(t, w, g, topology) })
	part("attacks", func(t *testing.T) {
		n := networkOf(topology, "net-red1")
		attackAll(t, g["a"], g["b"], g["x"], end{routerMAC(t, g["a"], n.Gateway4), n.Gateway4, n.Gateway6})
	})
	part("attack program", func(t *testing.T) { attackProgram(t, topology, g["a"], g["b"], g["x"]) })
	part("gateways", func(t *testing.T) { gateways(t, w, g, topology) })
	part("load balancer", func(t *testing.T) { balance(t, w, g) })
	part("branches", func(t *testing.T) { branches(t, w, g, topology) })
	part("egress", func(t *testing.T) { egress(t, w, g, topology) })
	part("states", func(t *testing.T) { states(t, w, topology) })
	part("lost claim", func(t *testing.T) { lostClaim(t, w) })
	part("uncounted", func(t *testing.T) { uncounted(t, w) })
	part("failures", func(t *testing.T) { failures(t, w, g, topology) })
	part("nothing left", func(t *testing.T) { nothingLeft(t, w, g) })
}

// leases checks what a guest gets by DHCP.
func leases(t *testing.T, g *guest, n sdn.Network) {
	out := g.w.must("ip", "netns", "exec", g.ns, "busybox", "udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", "20", "-T", "2", "-O", "staticroutes", "-O", "mtu", "-s", script(t))
	for _, want := range []string{"ip=" + g.port.Address4.String(), "router=" + n.Gateway4.String(), "dns=169.254.169.254", "mtu=1442", "lease=86400", "domain=red.internal",
		"staticroutes=169.254.169.254/32 0.0.0.0 0.0.0.0/0 " + n.Gateway4.String()} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("the lease lacks %q:\n%s", want, out)
		}
	}
}

func script(t *testing.T) string {
	path := t.TempDir() + "/bound"
	if err := os.WriteFile(path, []byte("#!/bin/sh\n[ $1 = bound ] && env\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func at(a netip.Addr, port uint16) string { return netip.AddrPortFrom(a, port).String() }

func reaches(t *testing.T, w *world, g map[string]*guest) {
	a, b, d, x := g["a"], g["b"], g["d"], g["x"]
	reach(t, w, a.ns, at(b.port.Address4, 80), "b")
	reach(t, w, a.ns, at(b.port.Address6, 80), "b")
	reach(t, w, d.ns, at(a.port.Address4, 80), "a") // through the router
	// The router has advertised the default route of IPv6.
	w.until("a default route of IPv6", func() error {
		if out := w.must("ip", "-n", d.ns, "-6", "route", "show", "default"); !strings.Contains(out, "via fe80::") {
			return fmt.Errorf("default routes = %q, want one via fe80::", out)
		}
		return nil
	})
	reach(t, w, d.ns, at(a.port.Address6, 80), "a")
	// Outgoing, with the router's address; incoming, to the floating one.
	if from := reach(t, w, a.ns, "203.0.113.2:80", "host"); !strings.Contains(from, "203.0.113.10:") {
		t.Errorf("source address outside = %q, want 203.0.113.10", from)
	}
	if from := reach(t, w, g["c"].ns, "203.0.113.2:80", "host"); !strings.Contains(from, "203.0.113.50:") {
		t.Errorf("source address outside with a floating IP = %q, want 203.0.113.50", from)
	}
	reach(t, w, w.wire, "203.0.113.50:80", "c")
	// Blue has the same addresses in separate networks.
	reach(t, w, x.ns, "203.0.113.2:80", "host")
	allDead(t, map[string][]string{
		x.ns: {at(a.port.Address4, 80), at(d.port.Address4, 80), at(b.port.Address6, 80)},
		a.ns: {at(x.port.Address4, 80), at(x.port.Address6, 80)},
	})
}

func securityGroups(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	a, c, d := g["a"], g["c"], g["d"]
	reach(t, w, a.ns, at(c.port.Address4, 80), "c")
	reach(t, w, a.ns, at(c.port.Address6, 81), "c")
	allDead(t, map[string][]string{
		a.ns:   {at(d.port.Address4, 80), at(d.port.Address6, 80)}, // nothing in, although it could connect out above
		w.wire: {"203.0.113.50:82"},
	})

	// Remove a rule, and refer to a group.
	t2 := topology
	t2.SecurityGroups = slices.Clone(topology.SecurityGroups)
	for i := range t2.SecurityGroups {
		s := &t2.SecurityGroups[i]
		switch s.ID {
		case web:
			s.Rules = []sdn.Rule{{Direction: api.Ingress, Protocol: api.ProtocolTCP, FirstPort: 81, LastPort: 81}}
		case shut:
			s.Rules = []sdn.Rule{{Direction: api.Ingress, Protocol: api.ProtocolTCP, Group: open}}
		}
	}
	w.apply(t, t2)
	reach(t, w, a.ns, at(c.port.Address4, 81), "c")
	reach(t, w, a.ns, at(d.port.Address4, 80), "d")
	allDead(t, map[string][]string{
		a.ns: {at(c.port.Address4, 80)},
		c.ns: {at(d.port.Address4, 80)},
		d.ns: {at(a.port.Address4, 80)}, // outgoing traffic is not allowed any more
	})
	w.apply(t, topology)
	reach(t, w, d.ns, at(a.port.Address4, 80), "a")
}

// questions checks that DHCP requests reach only the server, and no other host
// that a guest without any rule might send them to: neither in its network nor
// behind the router.
func questions(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	a, b, n := g["a"], g["b"], networkOf(topology, "net-red1")
	t2 := topology
	t2.SecurityGroups = append(slices.Clone(topology.SecurityGroups), sdn.SecurityGroup{ID: "sg-mute", Project: red, Rules: []sdn.Rule{
		{Direction: api.Ingress, Protocol: api.ProtocolAny}, {Direction: api.Egress, Protocol: api.ProtocolUDP, FirstPort: 1067, LastPort: 1067}}})
	t2.Ports = slices.Clone(topology.Ports)
	t2.Ports[0].SecurityGroups = []api.SecurityGroupID{"sg-mute"}
	w.apply(t, t2)
	to := func(e *guest, s, d uint16, mark string) []byte {
		return frame.Packet(e.port.MAC, a.port.MAC, a.port.Address4, e.port.Address4, frame.UDP(a.port.Address4, e.port.Address4, s, d, []byte(mark)))
	}
	arrived := false
	for try := 0; try < 20 && !arrived; try++ {
		a.send(t, to(b, 68, 67, "smuggled"))
		a.send(t, to(b, 1068, 1067, "allowed"))
		arrived = b.sees([]byte("allowed"), 3*time.Second)
	}
	if !arrived {
		t.Fatal("the allowed frame did not arrive, so this test proves nothing")
	}
	if b.saw([]byte("smuggled")) {
		t.Error("a guest without rules reached another one from port 68 to port 67, want the frame dropped")
	}

	// A renewal (RFC 2131, section 4.4.5) is sent to the server alone, and must
	// be answered.
	router := routerMAC(t, a, n.Gateway4)
	request := func(op byte) []byte { return []byte{op, 1, 6, 0, 0xba, 0x5a, 0x17, 0x01} }
	body := make([]byte, 240, 300)
	copy(body, request(1))
	copy(body[12:], a.port.Address4.AsSlice())
	copy(body[28:], frame.MAC(a.port.MAC))
	copy(body[236:], []byte{0x63, 0x82, 0x53, 0x63})
	body = append(body, 53, 1, 3, 255)
	answered := false
	for try := 0; try < 20 && !answered; try++ {
		a.send(t, frame.Packet(router, a.port.MAC, a.port.Address4, n.Gateway4, frame.UDP(a.port.Address4, n.Gateway4, 68, 67, body)))
		answered = a.sees(request(2), 3*time.Second)
	}
	if !answered {
		t.Error("the server did not answer the renewal of a lease")
	}
	w.apply(t, topology)
	reach(t, w, a.ns, at(b.port.Address4, 80), "b")
}

// hosts checks that a guest cannot reach the hosts, the control plane and the
// network between nodes.
func hosts(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	shut := []string{"203.0.113.1:6641", "172.31.7.254:22", "172.31.7.1:22"}
	allDead(t, map[string][]string{g["a"].ns: shut, g["c"].ns: shut}) // c by its floating IP
	// Without the forbidden set they can be reached: so it is what protects them.
	t2 := topology
	t2.Forbidden = nil
	w.apply(t, t2)
	reach(t, w, g["a"].ns, "203.0.113.1:6641", "control plane")
	reach(t, w, g["c"].ns, "172.31.7.254:22", "host inside")
	w.apply(t, topology)
	dead(t, g["a"].ns, "203.0.113.1:6641")
	// A host may still connect to a guest, and gets replies.
	reach(t, w, w.wire, "203.0.113.50:80", "c")
}

func routerMAC(t *testing.T, g *guest, gateway netip.Addr) string {
	t.Helper()
	var found string
	g.w.until("the gateway's MAC", func() error {
		_, _ = dial(g.ns, at(gateway, 9), 200*time.Millisecond)
		for _, f := range strings.Fields(g.w.must("ip", "-n", g.ns, "neigh", "show", gateway.String(), "dev", "eth0")) {
			if strings.Count(f, ":") == 5 {
				found = f
				return nil
			}
		}
		return errors.New("not known")
	})
	return found
}

func balance(t *testing.T, w *world, g map[string]*guest) {
	for _, from := range []struct{ ns, address string }{{g["a"].ns, "10.1.0.200:8080"}, {g["d"].ns, "10.1.0.200:8080"}, {w.wire, "203.0.113.60:8080"}} {
		seen := map[string]bool{}
		w.until("both backends from "+from.ns, func() error {
			answer, err := dial(from.ns, from.address, 3*time.Second)
			if err == nil {
				seen[answer[:1]] = true
			}
			if seen["b"] && seen["c"] {
				return nil
			}
			return fmt.Errorf("seen %v, %w", seen, cmp.Or(err, errors.New("answers")))
		})
	}
	w.until("both backends are up", func() error { return backends(w, 2, 0) })
	// One card is disconnected: connections go to the other backend.
	w.must("ip", "-n", g["b"].ns, "link", "set", "eth0", "down")
	w.until("one backend is down", func() error { return backends(w, 1, 1) })
	for range 10 {
		if answer := reach(t, w, g["a"].ns, "10.1.0.200:8080", ""); !strings.HasPrefix(answer, "c") {
			t.Errorf("answer after the failure of a backend = %q, want one of c", answer)
		}
	}
	w.must("ip", "-n", g["b"].ns, "link", "set", "eth0", "up")
	w.must("ip", "-n", g["b"].ns, "addr", "replace", "fd00:a1::b/64", "dev", "eth0", "nodad")
	w.must("ip", "-n", g["b"].ns, "route", "replace", "default", "via", "10.1.0.1")
	w.until("the backend is up again", func() error { return backends(w, 2, 0) })
}

// branches checks a project with floating IPs of two external networks with
// the same range, and the same addresses in both.
func branches(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	const lab = api.ExternalNetworkID("ext-lab")
	far, on := w.namespace("f"), w.nodes[1] // one node is connected to it
	w.must("ip", "link", "add", "vl0", "netns", on.ns, "type", "veth", "peer", "name", "far0", "netns", far)
	for _, x := range [][2]string{{on.ns, "vl0"}, {far, "far0"}} {
		w.must("ip", "-n", x[0], "link", "set", x[1], "up")
		w.plain(x[0], x[1])
	}
	for _, a := range []string{"203.0.113.1/24", "203.0.113.2/24"} {
		w.must("ip", "-n", far, "addr", "add", a, "dev", "far0")
	}
	vsctl := func(args ...string) {
		w.must(append([]string{"ip", "netns", "exec", on.ns, "ovs-vsctl", "--db=unix:" + filepath.Join(on.dir, "db.sock"), "--timeout=60"}, args...)...)
	}
	vsctl("--", "add-br", "bl", "--", "set", "bridge", "bl", "datapath_type=netdev", "--", "add-port", "bl", "vl0",
		"--", "set", "open", ".", "external_ids:ovn-bridge-mappings=\"external:bo,lab:bl\"")
	serve(t, far, "203.0.113.2:80", "lab")

	t2 := topology
	second := topology.External[0]
	second.ID, second.Physical, second.Gateways = lab, "lab", []api.NodeID{on.id}
	t2.External = append(slices.Clone(topology.External), second)
	t2.Branches = []sdn.Router{{Project: red, External: lab, Address4: topology.Routers[1].Address4}}
	t2.FloatingIPs = append(slices.Clone(topology.FloatingIPs), sdn.FloatingIP{ID: "fip-lab", Project: red, External: lab,
		Address: topology.FloatingIPs[0].Address, Port: "port-a-0", Target: g["a"].port.Address4})
	balanced := topology.LoadBalancers[0]
	balanced.ID, balanced.External, balanced.Address = "lb-lab", lab, frame.IP("10.1.0.201")
	balanced.Backends = []sdn.Backend{{Port: "port-b-0", Address: frame.IP("10.1.0.11"), Target: 81}}
	t2.LoadBalancers = append(slices.Clone(topology.LoadBalancers), balanced)
	w.apply(t, t2)
	reach(t, w, w.wire, "203.0.113.50:80", "c")
	reach(t, w, far, "203.0.113.50:80", "a")
	reach(t, w, g["a"].ns, "203.0.113.2:80", "lab")
	reach(t, w, g["b"].ns, "203.0.113.2:80", "host")
	reach(t, w, g["d"].ns, at(g["a"].port.Address4, 80), "a") // between the project's networks as before
	reach(t, w, far, "203.0.113.60:8080", "b")
	reach(t, w, w.wire, "203.0.113.60:8080", "")
	reach(t, w, g["a"].ns, "10.1.0.201:8080", "b")
	allDead(t, map[string][]string{far: {"203.0.113.50:82"}, g["a"].ns: {"203.0.113.1:6641"}})

	w.apply(t, topology)
	w.until("the floating IP is removed with its branch", func() error {
		if answer, err := dial(far, "203.0.113.50:80", time.Second); err == nil {
			return fmt.Errorf("connection succeeded with answer %q, want failure", answer)
		}
		return nil
	})
	reach(t, w, w.wire, "203.0.113.50:80", "c")
	reach(t, w, g["a"].ns, "203.0.113.2:80", "host")
	vsctl("--", "set", "open", ".", "external_ids:ovn-bridge-mappings=external:bo", "--", "del-br", "bl")
}

func backends(w *world, up, down int) error {
	s, err := w.control.Observe(context.Background())
	if err == nil && s.Backends["lb-1"] != (sdn.BackendState{Up: up, Down: down}) {
		err = fmt.Errorf("backends = %+v, want %d up and %d down of lb-1", s.Backends, up, down)
	}
	return err
}

func states(t *testing.T, w *world, topology sdn.Topology) {
	w.until("the observed state", func() error {
		s, err := w.control.Observe(t.Context())
		if err != nil {
			return err
		}
		for _, p := range topology.Ports {
			if s.Ports[p.ID] != (sdn.PortState{Up: true, Node: p.Nodes[0]}) {
				return fmt.Errorf("port %s = %+v, want up on %s", p.ID, s.Ports[p.ID], p.Nodes[0])
			}
		}
		if len(s.Chassis) != 3 || !s.Chassis["n2"].Current || s.Chassis["n2"].Encap != frame.IP("172.31.7.2") {
			return fmt.Errorf("chassis = %+v, want 3 and n2 current at 172.31.7.2", s.Chassis)
		}
		if s.Gateways[red] == "" || s.Gateways[blue] == "" {
			return fmt.Errorf("gateways = %v, want one of each project", s.Gateways)
		}
		return nil
	})
	for _, n := range w.nodes {
		if err := n.chassis.Health(t.Context()); err != nil {
			t.Errorf("%s: %v", n.id, err)
		}
	}
}

// failures kills each daemon in turn. Existing traffic must continue, and
// changes made meanwhile or afterwards must take effect.
func failures(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	a, b, c := g["a"], g["b"], g["c"]
	shutWeb := topology
	shutWeb.SecurityGroups = slices.Clone(topology.SecurityGroups)
	for i := range shutWeb.SecurityGroups {
		if shutWeb.SecurityGroups[i].ID == web {
			shutWeb.SecurityGroups[i].Rules = nil
		}
	}
	change := func(t *testing.T) {
		t.Helper()
		w.apply(t, shutWeb)
		dead(t, a.ns, at(c.port.Address4, 80))
		w.apply(t, topology)
		reach(t, w, a.ns, at(c.port.Address4, 80), "c")
	}
	goesOn := func(t *testing.T) {
		t.Helper()
		reach(t, w, a.ns, at(b.port.Address4, 80), "b")
		reach(t, w, a.ns, "203.0.113.2:80", "host")
	}
	t.Run("ovn-northd", func(t *testing.T) {
		for _, n := range []string{"northd1", "northd2"} { // one of them is active
			w.kill(n)
			goesOn(t)
			change(t)
			w.restart(n)
		}
	})
	t.Run("ovn-controller", func(t *testing.T) {
		w.kill("controller-n1")
		goesOn(t)
		w.restart("controller-n1")
		change(t)
		goesOn(t)
	})
	t.Run("a member of the databases", func(t *testing.T) {
		w.kill("m1") // the founder, and most likely the leader
		goesOn(t)
		change(t)
		w.restart("m1")
		change(t)
	})
	t.Run("Open vSwitch", func(t *testing.T) {
		w.kill("vswitchd-n1")
		w.restart("vswitchd-n1")
		goesOn(t)
	})
}

func nothingLeft(t *testing.T, w *world, g map[string]*guest) {
	for _, x := range g {
		x.inner.Close()
		x.outer.Close()
		if err := x.node.chassis.Unplug(t.Context(), x.port.ID); err != nil {
			t.Errorf("Unplug of %s: %v", x.port.ID, err)
		}
	}
	for _, n := range w.nodes {
		if ports, err := n.chassis.Ports(t.Context()); err != nil || len(ports) != 0 {
			t.Errorf("Ports of %s = %v, %v, want none", n.id, ports, err)
		}
		if out := w.must("ip", "-n", n.ns, "link"); strings.Contains(out, ": bt") {
			t.Errorf("a tap is left on %s: %s", n.id, out)
		}
	}
	w.apply(t, sdn.Topology{Cluster: "story"})
	w.until("an empty observed state", func() error {
		s, err := w.control.Observe(t.Context())
		if err == nil && len(s.Ports)+len(s.Gateways)+len(s.Backends) != 0 {
			err = fmt.Errorf("state = %+v, want no ports, gateways and backends", s)
		}
		return err
	})
}
