package metadata

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
	"github.com/basalt-gpu/basalt/sdn/resolver"
)

// zones has the name db with another address in each network.
type zones struct{}

func (zones) Guest(network api.NetworkID, a netip.Addr) bool {
	_, ok := both.Lookup(network, a)
	return ok
}

func (zones) Zone(network api.NetworkID) *resolver.Zone {
	address := map[api.NetworkID]string{"net-blue": "10.64.0.7", "net-red": "10.64.0.8"}[network]
	return resolver.NewZone(resolver.Facts{Names: map[string][]netip.Addr{"db": {netip.MustParseAddr(address)}}})
}

// TestService uses a real Open vSwitch (userspace) with a plain bridge instead
// of OVN's, two networks with the same range, separated by VLAN, and a guest
// in each with the same address.
func TestService(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real daemons for some 5 s")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, path := range []string{"/usr/sbin/ovsdb-server", "/usr/sbin/ovs-vswitchd", "/dev/net/tun"} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("host: " + path + " does not exist")
		}
	}
	home, err := newNamespace() // of the node: everything runs in it
	if err != nil {
		t.Fatal(err)
	}
	defer home.file.Close()
	dir, err := os.MkdirTemp("", "ovsmd") // paths of unix sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := func(argv ...string) string {
		t.Helper()
		var out string
		if err := home.inside(func() (err error) { out, err = command(t.Context(), argv[0], argv[1:]...); return err }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	daemon := func(argv ...string) {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir)
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		if err := home.inside(cmd.Start); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	db := "unix:" + dir + "/db.sock"
	run("ovsdb-tool", "create", dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	daemon("/usr/sbin/ovsdb-server", dir+"/conf.db", "--remote=p"+db, "-vconsole:off")
	daemon("/usr/sbin/ovs-vswitchd", db, "-vconsole:off", "--pidfile="+filepath.Join(dir, "ovs-vswitchd.pid"))
	vsctl := func(args ...string) string {
		return run(append([]string{"ovs-vsctl", "--retry", "--timeout=60", "--db=" + db}, args...)...)
	}
	vsctl("add-br", "br-int", "--", "set", "Bridge", "br-int", "datapath_type=netdev")

	blue := Network{ID: "net-blue", MAC: "0a:00:00:00:00:01", CIDR4: netip.MustParsePrefix("10.64.0.0/24")}
	red := Network{ID: "net-red", MAC: "0a:00:00:00:00:02", CIDR4: netip.MustParsePrefix("10.64.0.0/24")}
	names := resolver.New(zones{}, resolver.NewForwarder(nil))
	s := NewService(Config{Source: both, Switch: db, Names: names})
	apply := func(networks ...Network) {
		t.Helper()
		if err := home.inside(func() error { return s.Apply(context.Background(), networks) }); err != nil {
			t.Fatal(err)
		}
		for i, n := range networks {
			vsctl("set", "Port", Device(n.ID), fmt.Sprintf("tag=%d", map[string]int{"net-blue": 1, "net-red": 2}[string(networks[i].ID)]))
		}
	}
	apply(blue, red)
	defer home.inside(func() error { return s.Close() })
	if got := strings.TrimSpace(vsctl("get", "Interface", Device("net-blue"), "external_ids:iface-id")); got != "metadata-net-blue" {
		t.Errorf("iface-id of the port = %s, want metadata-net-blue", got)
	}
	if got := strings.TrimSpace(vsctl("get", "Interface", Device("net-blue"), "mac_in_use")); got == "" {
		t.Error("the switch's port has no MAC address, want a connected device")
	}

	guests := map[string]*namespace{}
	for name, tag := range map[string]string{"blue": "1", "red": "2"} {
		g, err := newNamespace()
		if err != nil {
			t.Fatal(err)
		}
		defer g.file.Close()
		guests[name] = g
		run("ip", "link", "add", "dev", "g"+name, "type", "veth", "peer", "name", "eth0", "netns", g.path())
		run("ip", "link", "set", "dev", "g"+name, "up")
		vsctl("add-port", "br-int", "g"+name, "tag="+tag)
		if err := g.inside(func() error {
			for _, words := range []string{"link set dev eth0 up", "address add 10.64.0.5/24 dev eth0", "address add 10.64.0.6/24 dev eth0", "route add 169.254.169.254 dev eth0 src 10.64.0.5"} {
				if _, err := command(t.Context(), "ip", strings.Fields(words)...); err != nil {
					return err
				}
			}
			return ethtool.SetOffload("eth0", false)
		}); err != nil {
			t.Fatal(err)
		}
		if err := home.inside(func() error { return ethtool.SetOffload("g"+name, false) }); err != nil {
			t.Fatal(err)
		}
	}
	get := func(guest, path string) (string, error) {
		var text string
		err := guests[guest].inside(func() error {
			// One connection, created on this thread: http dials on others.
			conn, err := dial(t.Context())
			if err != nil {
				return err
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path)
			r, err := http.ReadResponse(conn.reader, nil)
			if err != nil {
				return err
			}
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			text = string(b)
			return err
		})
		return text, err
	}
	want := func(guest, id string) {
		t.Helper()
		var got string
		var err error
		for w := patience.Start(); !w.Over(30 * time.Second); {
			if got, err = get(guest, "/latest/meta-data/instance-id"); err == nil {
				break
			}
		}
		if err != nil || got != id {
			t.Errorf("instance ID for guest %s = %q, %v, want %q", guest, got, err, id)
		}
	}
	want("blue", "ins-web")
	want("red", "ins-secret")

	// The same name in both networks, over UDP and over TCP.
	for guest, address := range map[string]string{"blue": "10.64.0.7", "red": "10.64.0.8"} {
		for _, network := range []string{"udp4", "tcp4"} {
			var m *dns.Msg
			if err := guests[guest].inside(func() error {
				c := dns.Client{Net: network, Timeout: 10 * time.Second}
				conn, err := c.DialContext(t.Context(), "169.254.169.254:53") // on this thread
				if err != nil {
					return err
				}
				defer conn.Close()
				m, _, err = c.ExchangeWithConn(new(dns.Msg).SetQuestion("db.", dns.TypeA), conn)
				return err
			}); err != nil {
				t.Fatalf("query of guest %s over %s: %v", guest, network, err)
			}
			if len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != address {
				t.Errorf("answer for guest %s over %s = %v, want %s", guest, network, m, address)
			}
		}
	}

	// After a basaltd was killed, its ports remain, and its namespaces disappear,
	// except those in which the kernel still has to notify a guest of a closed
	// connection: it retries for minutes.
	if err := guests["blue"].inside(func() error {
		conn, err := dial(t.Context())
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, err = command(t.Context(), "ip", "link", "set", "dev", "eth0", "down")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for id, r := range s.running {
		r.server.Close()
		<-r.ended
		r.names.Close()
		r.namespace.file.Close()
		delete(s.running, id)
	}
	s = NewService(Config{Source: both, Switch: db, Names: names})
	apply(red)
	want("red", "ins-secret")
	if ports := vsctl("list-ports", "br-int"); strings.Contains(ports, Device("net-blue")) || !strings.Contains(ports, Device("net-red")) {
		t.Errorf("ports of the switch = %q, want that of net-red and not that of net-blue", ports)
	}
	if links := run("ip", "-o", "link"); strings.Contains(links, Device("net-blue")) {
		t.Errorf("links = %q, want no link of a network that is not served any more", links)
	}
	apply()
	if ports := vsctl("list-ports", "br-int"); strings.Contains(ports, prefix) {
		t.Errorf("ports of the switch = %q, want none with prefix %s", ports, prefix)
	}
	if links := run("ip", "-o", "link"); strings.Contains(links, prefix) {
		t.Errorf("links = %q, want none with prefix %s", links, prefix)
	}
}
