package ovn_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/sdn"
)

// BenchmarkThroughput measures one TCP connection between two ports, on one
// chassis and on two, through OVN on the userspace datapath; for comparison
// the same namespaces and links on bridges of the same switches without OVN,
// with a Geneve tunnel between two of them. The ports are namespaces at veths
// and no VMs: the cost of a VM's card is not included.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b)
	t := story()
	at := func(name string, n api.NodeID) netip.Addr {
		i := slices.IndexFunc(t.Ports, func(p sdn.Port) bool { return p.Hostname == name })
		t.Ports[i].Nodes, t.Ports[i].SecurityGroups = []api.NodeID{n}, []api.SecurityGroupID{open}
		return t.Ports[i].Address4
	}
	at("a", "n1")
	near, far := at("b", "n1"), at("c", "n2")
	w.apply(b, t)
	for i, name := range []string{"a", "b", "c"} {
		p := portOf(t, name)
		w.cable(b, w.nodes[[]int{0, 0, 1}[i]], "br-int", name, p.MAC, netip.PrefixFrom(p.Address4, 24), string(p.ID))
	}
	plain := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(i)}) }
	for i, n := range w.nodes[:2] {
		w.vsctl(b, n, "add-br", "plain", "--", "set", "bridge", "plain", "datapath_type=netdev", "--", "add-port", "plain", "tunnel", "--",
			"set", "interface", "tunnel", "type=geneve", fmt.Sprintf("options:remote_ip=172.31.7.%d", 2-i), "options:key=4242")
	}
	for i, name := range []string{"pa", "pb", "pc"} {
		w.cable(b, w.nodes[[]int{0, 0, 1}[i]], "plain", name, fmt.Sprintf("52:54:00:00:09:%02x", i), netip.PrefixFrom(plain(i+1), 24), "")
	}
	for _, r := range []struct {
		name, from, to string
		address        netip.Addr
	}{
		{"one-chassis", "a", "b", near}, {"one-bridge", "pa", "pb", plain(2)},
		{"two-chassis", "a", "c", far}, {"two-bridges", "pa", "pc", plain(3)},
	} {
		b.Run(r.name, func(b *testing.B) { transfer(b, w, w.tag+r.from, w.tag+r.to, r.address) })
	}
}

const chunk = 1 << 20 // bytes per operation

// transfer transfers chunks over one connection between two namespaces. Before
// that, it measures short requests with their answers.
func transfer(b *testing.B, w *world, from, to string, address netip.Addr) {
	var l net.Listener
	where := netip.AddrPortFrom(address, 5001).String()
	if err := netns.Do(to, func() (err error) { l, err = net.Listen("tcp", where); return err }); err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				word := make([]byte, 1)
				for {
					if _, err := io.ReadFull(c, word); err != nil {
						return
					}
					if word[0] == 'c' {
						if _, err := io.CopyN(io.Discard, c, chunk-1); err != nil {
							return
						}
					}
					if _, err := c.Write(word); err != nil {
						return
					}
				}
			}()
		}
	}()
	var c net.Conn
	w.until(where, func() error {
		return netns.Do(from, func() (err error) { c, err = net.DialTimeout("tcp", where, 3*time.Second); return err })
	})
	defer c.Close()
	word := make([]byte, 1)
	ask := func(what []byte) {
		if _, err := c.Write(what); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, word); err != nil {
			b.Fatal(err)
		}
	}
	question, big := []byte("q"), make([]byte, chunk)
	big[0] = 'c'
	for range 20 {
		ask(question) // warm-up of the path
	}
	const asks = 200
	began := time.Now()
	for range asks {
		ask(question)
	}
	took := time.Since(began)
	b.SetBytes(chunk)
	for b.Loop() {
		ask(big)
	}
	b.ReportMetric(float64(took.Microseconds())/asks, "there-and-back-µs")
}

// cable creates a namespace with a card whose other end is a port of the
// bridge.
func (w *world) cable(t testing.TB, n *node, bridge, name, mac string, address netip.Prefix, port string) {
	t.Helper()
	ns := w.namespace(name)
	w.must("ip", "link", "add", "eth0", "netns", ns, "address", mac, "type", "veth", "peer", "name", "c"+name, "netns", n.ns)
	w.must("ip", "-n", ns, "link", "set", "eth0", "mtu", "1442", "up")
	w.must("ip", "-n", n.ns, "link", "set", "c"+name, "mtu", "1442", "up")
	w.must("ip", "-n", ns, "addr", "add", address.String(), "dev", "eth0")
	w.plain(ns, "eth0")
	w.plain(n.ns, "c"+name)
	args := []string{"add-port", bridge, "c" + name}
	if port != "" {
		args = append(args, "--", "set", "interface", "c"+name, "external_ids:iface-id="+port)
	}
	w.vsctl(t, n, args...)
}

func (w *world) vsctl(t testing.TB, n *node, args ...string) {
	t.Helper()
	w.must(append([]string{"ip", "netns", "exec", n.ns, "ovs-vsctl", "--db=unix:" + n.dir + "/db.sock", "--timeout=60"}, args...)...)
}
