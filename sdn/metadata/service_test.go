package metadata

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
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
	o := newSwitch(t)
	home, run, vsctl := o.home, o.run, o.vsctl
	blue := Network{ID: "net-blue", MAC: "0a:00:00:00:00:01", CIDR: netip.MustParsePrefix("10.64.0.0/24")}
	red := Network{ID: "net-red", MAC: "0a:00:00:00:00:02", CIDR: netip.MustParsePrefix("10.64.0.0/24")}
	names := resolver.New(zones{}, resolver.NewForwarder(nil))
	s := NewService(Config{Source: both, Switch: o.db, Names: names})
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

	guests := map[string]*namespace{
		"blue": o.guest("blue", 1, "address add 10.64.0.5/24 dev eth0", "address add 10.64.0.6/24 dev eth0", "route add 169.254.169.254 dev eth0 src 10.64.0.5"),
		"red":  o.guest("red", 2, "address add 10.64.0.5/24 dev eth0", "address add 10.64.0.6/24 dev eth0", "route add 169.254.169.254 dev eth0 src 10.64.0.5"),
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
	s = NewService(Config{Source: both, Switch: o.db, Names: names})
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
