package firewall

import (
	"flag"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	ovn   = []hostnet.PortRange{{First: 6641, Last: 6644}}
	ceph  = []hostnet.PortRange{{First: 3300, Last: 3300}, {First: 6800, Last: 7300}}
	ports = Ports{API: 7480, SSHGateway: 2222, AppGateway: 443, Peers: []uint16{7481}, OVN: ovn, Ceph: ceph}
)

var nodes = []netip.Addr{netip.MustParseAddr("192.0.2.12"), netip.MustParseAddr("198.51.100.12"), netip.MustParseAddr("2001:db8:1::12"), netip.MustParseAddr("192.0.2.12")}

func declared(t *testing.T, file string) hostnet.Network {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := hostnet.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func byName(l *hostnet.Link) []string { return []string{l.Name} }

func ruleset(n *hostnet.Network, p Ports, nodes []netip.Addr) string {
	links := Links(n, byName)
	return Ruleset(Rules(Services(n, p), links), links, nodes)
}

func TestRuleset(t *testing.T) {
	for _, test := range []struct {
		name, declaration string
		ports             Ports
		nodes             []netip.Addr
	}{
		{"one-card", "one-card", Ports{API: 7480}, nil},
		{"all-roles", "all-roles", ports, nodes},
		{"tunnel-address", "all-roles", Ports{Peers: []uint16{7481}, OVN: ovn, Ceph: ceph, EncapSet: true}, nodes},
		{"encryption", "all-roles", Ports{Peers: []uint16{7481}, OVN: ovn, Encryption: []hostnet.PortRange{{First: 51820, Last: 51820}, {First: 51821, Last: 51821}},
			EncryptionDevices: []string{"basalt-wg0", "basalt-wg1"}}, nodes},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := declared(t, "testdata/"+test.declaration+".yaml")
			got := ruleset(&n, test.ports, test.nodes)
			file := "testdata/" + test.name + ".nft"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s differs (-want +got):\n%s", file, d)
			}
			if os.Getuid() != 0 {
				return // nft asks the kernel
			}
			if _, err := exec.LookPath("nft"); err != nil {
				t.Logf("host: %v: not checked by nft", err)
				return
			}
			if err := (Host{Command: []string{"unshare", "--net", "nft"}}).Check(t.Context(), got); err != nil {
				t.Errorf("nft refuses %s: %v", file, err)
			}
		})
	}
}

// TestManagementIsReachable checks that SSH and the API are accepted on every
// management link from everybody, whatever else is declared.
func TestManagementIsReachable(t *testing.T) {
	n := declared(t, "testdata/all-roles.yaml")
	n.Cards[1].Roles = append(n.Cards[1].Roles, hostnet.Management)
	links := Links(&n, func(l *hostnet.Link) []string {
		if l.Name == "eno2" {
			return []string{"eno2", "br-encap"} // its packets arrive on a bridge
		}
		return byName(l)
	})
	got := map[string][]string{}
	for _, r := range Rules(Services(&n, ports), links) {
		if r.From == Anyone && len(r.Sources) == 0 && r.SourcePort == 0 {
			got[r.Service] = append(got[r.Service], r.Devices...)
		}
	}
	for _, service := range []string{"SSH", "API and portal"} {
		if want := []string{"br-encap", "eno1", "eno2"}; !cmp.Equal(got[service], want) {
			t.Errorf("%s is accepted from everybody on %v, want %v", service, got[service], want)
		}
	}
}

// TestExternalLinksAcceptNothing checks that a link of guests' external networks, and a
// link without a role, have no rule but the drop.
func TestExternalLinksAcceptNothing(t *testing.T) {
	n := declared(t, "testdata/all-roles.yaml")
	n.Cards = append(n.Cards, hostnet.Card{Link: hostnet.Link{Name: "eno5"}})
	for _, line := range strings.Split(ruleset(&n, ports, nodes), "\n") {
		if (strings.Contains(line, `"eno4"`) || strings.Contains(line, `"eno5"`)) && !strings.HasSuffix(line, "counter drop") {
			t.Errorf("rule %q has a link without services, want only the drop", strings.TrimSpace(line))
		}
	}
	if text := ruleset(&n, ports, nodes); !strings.Contains(text, `iifname { "eno1", "eno2", "eno3", "eno4", "eno5" } counter drop`) {
		t.Errorf("ruleset has no drop for all declared links:\n%s", text)
	}
}

func nodesOf(all ...string) (out []netip.Addr) {
	for _, a := range all {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}
