package ovn_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// ledger adds up the counters of all nodes, as billing does.
type ledger struct {
	w       *world
	exits   []sdn.Exit
	counted map[string]uint64 // by counter
	sum     map[string]uint64 // by owner
}

func (l *ledger) read(t *testing.T) map[api.NodeID][]sdn.Egress {
	t.Helper()
	seen, problems := make([][]sdn.Egress, len(l.w.nodes)), make([]error, len(l.w.nodes))
	l.w.until("the counters of all nodes", func() error {
		together(len(l.w.nodes), func(i int) { seen[i], problems[i] = l.w.nodes[i].chassis.Egress(t.Context(), l.exits) })
		return errors.Join(problems...)
	})
	all := map[api.NodeID][]sdn.Egress{}
	for i, n := range l.w.nodes {
		all[n.id] = seen[i]
		for _, e := range seen[i] {
			name := string(n.id) + e.Counter
			if was := l.counted[name]; e.Bytes >= was {
				l.sum[e.Owner] += e.Bytes - was
			} else {
				l.sum[e.Owner] += e.Bytes
			}
			l.counted[name] = e.Bytes
		}
	}
	return all
}

// rest returns the sums after every switch has counted what it has forwarded
// so far.
func (l *ledger) rest(t *testing.T) map[string]uint64 {
	t.Helper()
	together(len(l.w.nodes), func(i int) {
		n := l.w.nodes[i]
		// ovs-vswitchd(8): returns when all flows of the datapath have been
		// revalidated.
		if out, err := exec.Command("ovs-appctl", "--timeout=60", "-t", filepath.Join(n.dir, "vswitchd.ctl"), "revalidator/wait").CombinedOutput(); err != nil {
			t.Errorf("revalidator/wait on %s: %v: %s", n.id, err, out)
		}
	})
	l.read(t)
	return maps.Clone(l.sum)
}

// together runs f for 0 to n-1 concurrently.
func together(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// grew checks how much the sums grow while f runs.
func (l *ledger) grew(t *testing.T, what string, f func(), want map[string][2]uint64) {
	t.Helper()
	was := l.rest(t)
	f()
	is := l.rest(t)
	for _, owner := range slices.Sorted(maps.Keys(is)) {
		if grew, w := is[owner]-was[owner], want[owner]; grew < w[0] || grew > w[1] {
			t.Errorf("%s: count of %s grew by %d bytes, want %d to %d", what, owner, grew, w[0], w[1])
		} else if grew > 0 {
			t.Logf("%s: count of %s grew by %d bytes", what, owner, grew)
		}
	}
}

// on waits until the node counts for the owner.
func (l *ledger) on(t *testing.T, node api.NodeID, owner string) {
	t.Helper()
	l.w.until(string(node)+" counts for "+owner, func() error {
		if all := l.read(t)[node]; !slices.ContainsFunc(all, func(e sdn.Egress) bool { return e.Owner == owner }) {
			return fmt.Errorf("counters = %+v, want one of %s", all, owner)
		}
		return nil
	})
}

// tunnelsUp waits until BFD reports all tunnels up, which determines the
// gateways.
func (w *world) tunnelsUp() {
	for _, n := range w.nodes {
		w.until("the tunnels of "+string(n.id)+" are up", func() error {
			// ovs-vswitchd(8)
			out, err := exec.Command("ovs-appctl", "--timeout=20", "-t", filepath.Join(n.dir, "vswitchd.ctl"), "bfd/show").CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			all, up := strings.Count(string(out), "Local Session State:"), strings.Count(string(out), "Local Session State: up")
			if up == 0 || up != all {
				return fmt.Errorf("%d of %d BFD sessions are up, want all: %s", up, all, out)
			}
			return nil
		})
	}
}

const payload = 1000 // bytes of a datagram

// shower sends datagrams from one namespace to another's address. It returns
// the least and the most bytes that may have left, for headers of the given
// size.
func (w *world) shower(t *testing.T, from, to, address string, n int, headers uint64) [2]uint64 {
	t.Helper()
	var l net.PacketConn
	if err := netns.Do(to, func() (err error) { l, err = net.ListenPacket("udp", address); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var came atomic.Int64
	go func() {
		buf := make([]byte, 2*payload)
		for {
			if _, _, err := l.ReadFrom(buf); err != nil {
				return
			}
			came.Add(1)
		}
	}()
	if err := netns.Do(from, func() error {
		c, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		for range n {
			if _, err := c.Write(make([]byte, payload)); err != nil {
				return err
			}
			time.Sleep(2 * time.Millisecond)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for wait := patience.Start(); came.Load() < int64(n) && !wait.Over(5*time.Second); {
		time.Sleep(10 * time.Millisecond)
	}
	if came.Load() < int64(n)/10 { // some are lost during neighbor discovery
		t.Fatalf("%d of %d datagrams from %s to %s arrived, want at least a tenth", came.Load(), n, from, address)
	}
	return [2]uint64{uint64(came.Load()) * (payload + headers), uint64(n) * (payload + headers)}
}

const (
	headers4 = 14 + 20 + 8 // Ethernet, IPv4, UDP
	headers6 = 14 + 40 + 8

	// lastWords are bytes of an earlier connection: a FIN that was not
	// acknowledged is sent again, at any later time.
	lastWords = 2 * (14 + 40 + 20)
)

// egress checks that outgoing traffic is counted to the byte, for the right
// owner, once, and that incoming and internal traffic is not.
func egress(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	l := &ledger{w: w, counted: map[string]uint64{}, sum: map[string]uint64{}, exits: []sdn.Exit{
		{Owner: "rtr-red", Project: red, External: outside}, {Owner: "rtr-blue", Project: blue, External: outside},
		{Owner: "fip-1", Project: red, External: outside, Source: frame.IP("203.0.113.50")},
		{Owner: "fip-2", Project: red, External: outside, Source: frame.IP("203.0.113.60")},
	}}
	a, b, c, d, x := g["a"], g["b"], g["c"], g["d"], g["x"]
	const host, host6 = "203.0.113.2:9", "[2001:db8:7::2]:9"
	outward := topology
	outward.External = slices.Clone(topology.External)
	outward.External[0].CIDR6 = prefix("2001:db8:7::/64")
	outward.Routers = slices.Clone(topology.Routers)
	outward.Routers[1].Address6 = frame.IP("2001:db8:7::10")
	w.must("ip", "-n", w.wire, "addr", "add", "2001:db8:7::2/64", "dev", "bo", "nodad")
	w.apply(t, outward)
	defer w.apply(t, topology)
	gateway := func() api.NodeID { return w.gateway(t, red) }
	on := gateway()
	l.on(t, on, "rtr-red")

	send := func(what string, from *guest, owner, address string, headers uint64) {
		t.Helper()
		want := map[string][2]uint64{owner: {}}
		l.grew(t, what, func() {
			sent := w.shower(t, from.ns, w.wire, address, 200, headers)
			want[owner] = [2]uint64{sent[0], sent[1] + lastWords}
		}, want)
	}
	send("out", a, "rtr-red", host, headers4)
	send("out with a floating IP", c, "fip-1", host, headers4)
	send("another project", x, "rtr-blue", host, headers4)
	serve(t, w.wire, "[2001:db8:7::2]:80", "host6")
	reach(t, w, a.ns, "[2001:db8:7::2]:80", "host6") // neighbor discovery is done: no datagram waits for it
	send("IPv6", a, "rtr-red", host6, headers6)
	want := map[string][2]uint64{"fip-2": {150, 3000}} // a connection with a short answer
	l.grew(t, "answers of a load balancer", func() { reach(t, w, w.wire, "203.0.113.60:8080", "") }, want)

	l.grew(t, "internal traffic", func() {
		w.shower(t, a.ns, b.ns, at(b.port.Address4, 9), 50, headers4)
		reach(t, w, d.ns, at(a.port.Address4, 80), "a") // through the router
		reach(t, w, a.ns, "203.0.113.50:80", "c")       // … and by an external address
		reach(t, w, x.ns, "203.0.113.50:80", "c")       // to another project
		reach(t, w, x.ns, "203.0.113.60:8080", "")      // … and its load balancer
		// Connections from an external host: incoming, to closed ports.
		dead(t, w.wire, at(a.port.Address4, 80), "203.0.113.50:7", "203.0.113.50:22")
	}, nil)

	// A router's neighbor entry expires after 300 s, and only ovn-controller
	// learns it again: make it fresh.
	w.must("ovn-sbctl", "--db="+strings.Join(w.members(), ","), "--timeout=20", "--all", "destroy", "MAC_Binding")
	w.until("the router has learned the host's MAC", func() error {
		reach(t, w, a.ns, "203.0.113.2:80", "host") // again: while a node still has the old row, nothing is learned
		if rows := w.must("ovn-sbctl", "--db="+strings.Join(w.members(), ","), "--timeout=20", "--bare", "--columns=mac", "find", "MAC_Binding", "ip=203.0.113.2"); strings.TrimSpace(rows) == "" {
			return errors.New("there is no row of it")
		}
		return nil
	})
	w.apply(t, outward) // Apply waits for every node, so the flows exist again
	w.kill("controller-" + string(on))
	send("without ovn-controller", a, "rtr-red", host, headers4)
	w.restart("controller-" + string(on))
	w.apply(t, outward)
	l.on(t, on, "rtr-red")
	send("with ovn-controller again", a, "rtr-red", host, headers4)
	l.rest(t)
	w.kill("vswitchd-" + string(on))
	w.restart("vswitchd-" + string(on))
	w.apply(t, outward) // its flows exist again
	w.tunnelsUp()       // so the router stays there
	w.until("the router is on the same node", func() error {
		if gateway() != on {
			return fmt.Errorf("the router is on %s, want %s", gateway(), on)
		}
		return nil
	})
	reach(t, w, a.ns, "203.0.113.2:80", "host")
	l.on(t, on, "rtr-red")
	send("after the switch has died", a, "rtr-red", host, headers4)

	// Move the router to another node, and back.
	moved := outward
	moved.External = slices.Clone(outward.External)
	moved.External[0].Gateways = slices.DeleteFunc(slices.Clone(outward.External[0].Gateways), func(n api.NodeID) bool { return n == on })
	w.apply(t, moved)
	w.until("the router is on another node", func() error {
		if gateway() == on {
			return fmt.Errorf("the router is on %s, want another node", on)
		}
		return nil
	})
	reach(t, w, a.ns, "203.0.113.2:80", "host")
	l.on(t, gateway(), "rtr-red")
	send("from another node", a, "rtr-red", host, headers4)
	send("from another node with a floating IP", c, "fip-1", host, headers4)
	w.apply(t, outward)
	w.until("the router is on the first node again", func() error {
		if gateway() != on {
			return fmt.Errorf("the router is on %s, want %s", gateway(), on)
		}
		return nil
	})
	reach(t, w, a.ns, "203.0.113.2:80", "host")
	l.on(t, on, "rtr-red")
	send("from the first node again", a, "rtr-red", host, headers4)

	// Detach a floating IP: further traffic counts for the router, and the last
	// bytes with the floating IP are reported before its flow is removed.
	l.rest(t)
	last := w.shower(t, c.ns, w.wire, host, 50, headers4)
	before := maps.Clone(l.sum)
	freed := outward
	freed.FloatingIPs = nil
	l.exits = slices.Delete(l.exits, 2, 3)
	w.apply(t, freed)
	w.until("its counter is removed", func() error {
		if all := l.read(t)[on]; slices.ContainsFunc(all, func(e sdn.Egress) bool { return e.Owner == "" }) {
			return fmt.Errorf("counters = %+v, want none without an owner", all)
		}
		return nil
	})
	if n := l.sum[""] - before[""]; n < last[0] || n > last[1] {
		t.Errorf("last bytes with the detached floating IP = %d, want %d to %d", n, last[0], last[1])
	}
	send("without a floating IP", c, "rtr-red", host, headers4)
	l.exits = nil
	l.read(t) // obsolete counters are removed once they have settled: see uncounted
}

// uncounted checks that no node counts exits that are not requested any more.
func uncounted(t *testing.T, w *world) {
	l := &ledger{w: w, counted: map[string]uint64{}, sum: map[string]uint64{}}
	w.until("no counters", func() error {
		for node, all := range l.read(t) {
			if len(all) > 0 {
				return fmt.Errorf("counters of %s = %+v, want none", node, all)
			}
		}
		return nil
	})
}

// gateway returns the node of a project's gateway.
func (w *world) gateway(t *testing.T, p api.ProjectID) (node api.NodeID) {
	t.Helper()
	w.until("the gateway of "+string(p), func() error {
		s, err := w.control.Observe(t.Context())
		if node = s.Gateways[p]; err == nil && node == "" {
			// As the leader does: a node's claim and another's release may have
			// coincided (retrygateways.go).
			err = errors.Join(fmt.Errorf("gateways = %v, want one of %s", s.Gateways, p), w.control.RetryGateways(t.Context()))
		}
		return err
	})
	return node
}
