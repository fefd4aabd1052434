package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// otherPort is a port of the node that no service of it uses.
const otherPort = 9999

// hears connects to otherPort of the node from outside, and returns what a program there
// answers: "" if nothing does.
func (c *computer) hears(ctx context.Context) string {
	ctx, cancel := patience.Context(ctx, 20*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", c.host, c.otherPort))
	if err != nil {
		return ""
	}
	defer conn.Close()
	// QEMU accepts the connection before the node does.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	answer, _ := io.ReadAll(io.LimitReader(conn, 64)) // "" after the time limit
	return strings.TrimSpace(string(answer))
}

// listens starts a program on the node that answers at otherPort.
func (c *computer) listens(t *testing.T, p *power) {
	t.Helper()
	c.ssh(t, fmt.Sprintf("systemd-run -q --unit=listener systemd-socket-activate --accept --inetd -l %d /bin/echo heard", otherPort))
	p.poll("a program at the other port", func(ctx context.Context) error {
		out, err := c.try(ctx, fmt.Sprintf("timeout 10 cat </dev/tcp/127.0.0.1/%d", otherPort))
		if err == nil && out != "heard" {
			err = errors.New(out)
		}
		return err
	})
}

// filters checks the packet filter of an installed node from outside: the declared
// services answer, which the caller uses all the time; a port without a rule does not,
// although a program listens there.
func (c *computer) filters(t *testing.T, p *power) {
	t.Helper()
	if state := c.ssh(t, "systemctl show -P ActiveState basalt-firewall.service; systemctl is-enabled basalt-firewall.service"); !strings.HasSuffix(state, "enabled") {
		t.Errorf("service that loads the rules at boot is %q, want enabled", state)
	}
	c.listens(t, p)
	dropped := "nft list table inet basalt | sed -n 's/.*counter packets \\([0-9]*\\) .*drop/\\1/p'"
	before := c.ssh(t, dropped)
	if got := c.hears(t.Context()); got != "" {
		t.Errorf("answer from a port without a rule = %q, want none", got)
	}
	if after := c.ssh(t, dropped); after == before {
		t.Errorf("dropped packets = %s before and after a connection to a port without a rule, want more", after)
	}
}

// declared is a network with a bond on the node's card, on which QEMU's server assigns
// the address. %s: the bond of two more links and its VLAN; %d: the port that is opened.
const declared = `version: 1
cards:
  - {name: main0, mac: "52:54:00:ba:5a:17"}
%s
firewall: {enabled: true, allow: [{protocol: tcp, ports: [%d]}]}
`

const managed = "bonds:\n  - {name: bond0, cards: [main0], mode: active-backup, addresses: [dhcp4], roles: [management]}\n"

// storageLinks are a bond with LACP on two links to a switch, and a VLAN on it.
// %d: its number.
const storageLinks = "  - {name: wire0}\n  - {name: wire1}\n" + managed +
	"  - {name: bond1, cards: [wire0, wire1], mode: 802.3ad, lacpRate: fast, mtu: 9000}\n" +
	"vlans:\n  - {name: storage0, on: bond1, id: %d, addresses: [198.51.100.11/24], roles: [storage]}\n"

// theSwitch makes a switch in a network namespace of the node, with LACP on both of its
// ports, and a host in VLAN 20 that accepts connections.
const theSwitch = `set -e
modprobe -a bonding 8021q veth
ip netns add switch
ip -n switch link add bond1 type bond mode 802.3ad miimon 100 lacp_rate fast
for n in 0 1; do
	ip link add wire$n type veth peer name port$n netns switch
	ip -n switch link set port$n master bond1
done
ip -n switch link set bond1 mtu 9000 up
ip -n switch link add link bond1 name vlan20 type vlan id 20
ip -n switch address add 198.51.100.1/24 dev vlan20
ip -n switch link set vlan20 up
ip netns exec switch systemd-socket-activate --accept -l 198.51.100.1:7481 /bin/cat >/dev/null 2>&1 &
`

// apply applies a declaration on the node, and returns the command's output.
func (c *computer) apply(text, options string) (string, error) {
	ctx, cancel := patience.Context(context.Background(), 5*time.Minute)
	defer cancel()
	return c.try(ctx, "cat >/run/declared.yaml <<'END'\n"+text+"END\nbasaltd network apply /run/declared.yaml --confirm-within 30m "+options)
}

// TestLinks is the long test of a declared network on an installed node: a bond of its
// card, a bond with LACP, and a VLAN with large packets, while one of two cables is cut. A
// VLAN on which a peer does not answer is rolled back. The bond of the card remains, also
// after a restart.
func TestLinks(t *testing.T) {
	layer.NeedLong(t, "appliance/node/hostnet/trial TestNetworkd")
	iso := prepared(t)
	c := newComputer(t, "node1", "BASALT0001")
	c.install(t, iso, answersFAT(t, c.answers(answersDHCP))).complete()
	p := c.serves(t)
	c.listens(t, p)
	c.ssh(t, theSwitch)
	must := func(vlan int) string {
		return fmt.Sprintf(declared, fmt.Sprintf(storageLinks, vlan), otherPort)
	}
	if out, err := c.apply(must(20), ""); err != nil {
		t.Fatalf("apply bonds and a VLAN: %v\n%s", err, out)
	}
	p.poll("the API on trial", c.healthy)
	if got := c.hears(t.Context()); got != "heard" {
		t.Errorf("answer from the declared port = %q, want heard", got)
	}
	const large = "ping -n -q -c 1 -W 10 -M do -s 8972 198.51.100.1"
	p.poll("LACP on both links", func(ctx context.Context) error {
		out, err := c.try(ctx, "grep -c 'port state: 63' /proc/net/bonding/bond1; "+large)
		if err == nil && !strings.HasPrefix(out, "4") { // of the actor and the partner, for each link
			err = errors.New(out)
		}
		return err
	})
	c.ssh(t, "ip -n switch link set port0 down")
	p.poll("the VLAN over the other link", func(ctx context.Context) error { _, err := c.try(ctx, large); return err })
	c.ssh(t, "ip -n switch link set port0 up && basaltd network confirm")

	out, err := c.apply(must(21), "--reach 198.51.100.1:7481")
	if err == nil || !strings.Contains(out, "198.51.100.1:7481 does not answer") {
		t.Errorf("apply a VLAN on which a peer does not answer: %v\n%s\nwant that it does not answer", err, out)
	}
	p.poll("the VLAN after the rollback", func(ctx context.Context) error { _, err := c.try(ctx, large); return err })

	out, err = c.apply(fmt.Sprintf(declared, managed, otherPort), "")
	if err != nil {
		t.Fatalf("apply the bond of the card: %v\n%s", err, out)
	}
	c.ssh(t, "basaltd network confirm; ip netns del switch")
	if left := c.ssh(t, "ls -d /sys/class/net/bond1 /sys/class/net/storage0 2>/dev/null || true"); left != "" {
		t.Errorf("interfaces that are not declared any more = %q, want none", left)
	}
	c.bondWorks(t)
	p.cut()
	c.serves(t)
	c.bondWorks(t)
}

// bondWorks checks that the node is reached through the bond, with its rules.
func (c *computer) bondWorks(t *testing.T) {
	t.Helper()
	if out := c.ssh(t, "ip -o -4 address show dev bond0"); !strings.Contains(out, "10.0.2.15/24") {
		t.Errorf("addresses of bond0 = %q, want 10.0.2.15/24", out)
	}
	if rules := c.ssh(t, "nft --stateless list table inet basalt"); !strings.Contains(rules, `"bond0"`) {
		t.Errorf("rules of the node do not mention bond0:\n%s", rules)
	}
}
