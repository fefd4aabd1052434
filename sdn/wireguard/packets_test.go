package wireguard

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEncryption turns the encryption on, changes keys, and turns it off, while packets
// of tunnels are sent between three nodes.
func TestEncryption(t *testing.T) {
	for _, c := range []struct {
		name       string
		v6, kernel bool
	}{{"IPv4", false, false}, {"IPv6", true, false}, {"kernel, IPv4", false, true}, {"kernel, IPv6", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, 3, c.v6, c.kernel)
			p.round(nil)
			if !p.visible(p.nodes[0], "off") {
				t.Error("off: packets are not visible on the wire, so the capture proves nothing")
			}
			p.wanted.On = true
			p.until("encrypted", func() { p.deliver("turning on") })
			if p.visible(p.nodes[0], "encrypted") {
				t.Error("encrypted: packets can be read on the wire")
			}
			// A network from before the encryption may have packets that fill the interface.
			if text := strings.Repeat("full ", 287); !p.tunneled(p.nodes[0], p.nodes[1], text, arrivalTime) {
				t.Errorf("a packet of %d bytes is lost", len(text))
			}
			before := p.nodes[0].report.Keys[0].Public
			p.wanted.Rotation++
			p.while("another key", func() { p.deliver("rotating") }, func() bool {
				return p.state.Stage() == "encrypted" && len(p.nodes[0].report.Keys) == 1 && p.nodes[0].report.Keys[0].Public != before
			})
			if p.visible(p.nodes[0], "rotated") {
				t.Error("rotated: packets can be read on the wire")
			}
			for _, n := range p.nodes {
				p.checkKeys(n)
			}
			p.wanted.On = false
			p.until("off", func() { p.deliver("turning off") })
			p.checkRemoved()
		})
	}
}

// checkKeys checks that a node has one private key, which only root can read, and which it
// does not report.
func (p *place) checkKeys(n *testNode) {
	p.t.Helper()
	files, err := os.ReadDir(n.dir)
	if err != nil || len(files) != 1 {
		p.t.Fatalf("node %s: files %v, error %v; want one key", n.id, files, err)
	}
	for _, path := range []string{n.dir, filepath.Join(n.dir, files[0].Name())} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm()&0o077 != 0 {
			p.t.Errorf("%s: mode %v, error %v; want that only root can read it", path, i.Mode(), err)
		}
	}
	private, err := os.ReadFile(filepath.Join(n.dir, files[0].Name()))
	if err != nil || strings.Contains(fmt.Sprintf("%+v", n.report), strings.TrimSpace(string(private))) {
		p.t.Errorf("node %s reports its private key, or it cannot be read: %v", n.id, err)
	}
}

// checkRemoved checks that nothing of the encryption is left.
func (p *place) checkRemoved() {
	p.t.Helper()
	for _, n := range p.nodes {
		if n.report.Problem != "" {
			p.t.Errorf("node %s: %s", n.id, n.report.Problem)
		}
		if files, err := os.ReadDir(n.dir); err != nil || len(files) > 0 {
			p.t.Errorf("node %s: keys %v, error %v; want none", n.id, files, err)
		}
		for _, argv := range [][]string{{"ip", "-4", "rule"}, {"ip", "-6", "rule"}, {"nft", "list", "ruleset"}, {"ip", "link"}} {
			out := command(p.t, append([]string{"ip", "netns", "exec", n.ns}, argv...)...)
			if strings.Contains(out, table) || strings.Contains(out, filterTable) || strings.Contains(out, p.tag+n.id) {
				p.t.Errorf("node %s: %v has\n%s", n.id, argv, out)
			}
		}
	}
}

// TestWrongKey has a node whose key another does not know, and checks that its packets do
// not arrive, nor plain ones, nor packets to it.
func TestWrongKey(t *testing.T) {
	p := newPlace(t, 2, true, false)
	p.wanted.On = true
	p.until("encrypted", nil)
	a, b := p.nodes[0], p.nodes[1]
	k, err := privateKey(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "key-1"), []byte(k.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.links.end(p.tag+"b1", syscall.SIGKILL); err != nil { // with the session of the known key
		t.Fatal(err)
	}
	b.node.Step(t.Context(), p.intent(b)) // its report does not arrive
	if p.tunneled(b, a, "with another key", time.Second) {
		t.Error("a packet with a key that is not known was accepted")
	}
	if p.tunneled(a, b, "to another key", time.Second) {
		t.Error("a packet to a node with a key that is not known has arrived")
	}
	if err := errors.Join(b.node.c.Host.removeFilter(t.Context()), b.node.c.Host.unroute(t.Context(), "-6")); err != nil {
		t.Fatal(err)
	}
	if p.tunneled(b, a, "plain", time.Second) {
		t.Error("a plain packet was accepted")
	}
	p.while("packets with the new key", nil, func() bool {
		return p.tunneled(a, b, "known", 100*time.Millisecond) && p.tunneled(b, a, "known", 100*time.Millisecond)
	})
	p.deliver("with the new key")
}

// TestRestarts kills nodes while tunnels are encrypted: the interface with its program,
// and the node's part in basaltd. Meanwhile nothing is sent in plain.
func TestRestarts(t *testing.T) {
	p := newPlace(t, 3, false, false)
	p.wanted.On = true
	p.until("encrypted", nil)
	a, b := p.nodes[0], p.nodes[1]
	if err := b.links.end(p.tag+"b1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stop := p.capture(b)
	if p.tunneled(b, a, secret, time.Second) {
		t.Error("a packet has arrived without an interface")
	}
	if bytes.Contains(stop(), []byte(secret)) {
		t.Error("without an interface packets are sent in plain")
	}
	p.start(b) // a new basaltd
	p.while("packets after a restart", nil, func() bool { return p.tunneled(b, a, "after", 100*time.Millisecond) })
	p.deliver("after a restart")
	p.checkFlush(a, b)
}

// checkFlush has other programs remove the rules.
func (p *place) checkFlush(a, b *testNode) {
	t := p.t
	t.Helper()
	command(t, "ip", "-n", a.ns, "rule", "delete", "pref", rulePref)
	stop := p.capture(a)
	if p.tunneled(a, b, secret, time.Second) || bytes.Contains(stop(), []byte(secret)) {
		t.Error("without the rule packets are sent in plain")
	}
	p.round(nil)
	p.deliver("with the rule")
	command(t, "ip", "netns", "exec", a.ns, "nft", "flush", "ruleset")
	command(t, "ip", "-n", a.ns, "rule", "delete", "pref", rulePref)
	p.round(nil)
	if out := command(t, "ip", "netns", "exec", a.ns, "nft", "list", "ruleset"); !strings.Contains(out, filterTable) {
		t.Errorf("after a flush the rules are\n%s", out)
	}
	if p.visible(a, "after a flush") {
		t.Error("after a flush packets can be read on the wire")
	}
}

// TestNodesComeAndGo has a node that is lost while the encryption is turned on, and one
// that joins afterwards.
func TestNodesComeAndGo(t *testing.T) {
	p := newPlace(t, 3, false, false)
	c := p.nodes[2]
	p.round(nil)
	c.lost = true
	p.wanted.On = true
	p.until("encrypted", nil)
	if p.tunneled(c, p.nodes[0], "plain", time.Second) {
		t.Error("a plain packet of a node that was lost was accepted")
	}
	c.lost = false
	p.while("the node that was lost", nil, func() bool { return p.tunneled(c, p.nodes[0], "back", 100*time.Millisecond) })
	p.add()
	p.while("the new node", nil, func() bool {
		return p.tunneled(p.nodes[3], p.nodes[0], "new", 100*time.Millisecond) && p.tunneled(p.nodes[1], p.nodes[3], "new", 100*time.Millisecond)
	})
	p.deliver("with the new node")
	if p.visible(p.nodes[3], "with the new node") {
		t.Error("packets of the new node can be read on the wire")
	}
}

// TestWithoutWireGuard checks what a node reports if its kernel has no WireGuard: tunnels
// stay plain, and it says why.
func TestWithoutWireGuard(t *testing.T) {
	p := newPlace(t, 2, false, false)
	a := p.nodes[0]
	host := Host{Prefix: []string{"ip", "netns", "exec", a.ns}}
	if err := host.Create(t.Context(), "probe0", 1420); err == nil {
		t.Skip("host: the kernel has WireGuard")
	}
	a.node = NewNode(Config{Dir: a.dir, Host: host, Device: p.tag + a.id})
	p.wanted.On = true
	for range 3 {
		p.round(nil)
		p.deliver("without WireGuard")
	}
	if why := Waiting(p.intent(a), a.report); !strings.Contains(why, "the kernel of this node has no WireGuard") || !strings.Contains(why, "module wireguard") {
		t.Errorf("the node with the problem waits for %q", why)
	}
	if why := Waiting(p.intent(p.nodes[1]), p.nodes[1].report); !strings.Contains(why, "no key yet from node-a") {
		t.Errorf("the other node waits for %q", why)
	}
	p.wanted.On = false
	p.until("off", nil)
	a.node = NewNode(Config{Dir: a.dir, Host: host, Links: a.links, Device: p.tag + a.id})
	p.wanted.On = true
	p.until("encrypted", nil)
	i := p.intent(a)
	i.Userspace = true
	if r := a.node.Step(t.Context(), i); !strings.Contains(r.Problem, "forwards in user space") {
		t.Errorf("with the datapath in user space the problem is %q", r.Problem)
	}
}

const innerPort = 7000

// TestGeneve has the kernel's Geneve tunnels, as Open vSwitch uses them, through the
// kernel's WireGuard.
func TestGeneve(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) {
			p := newPlace(t, 2, v6, true)
			for i, n := range p.nodes {
				_ = n.socket.Close() // the port is the kernel's
				if out, err := exec.Command("ip", "-n", n.ns, "link", "add", "inside", "mtu", "1422", "type", "geneve", "id", "7", "remote", p.nodes[1-i].address.String()).CombinedOutput(); err != nil {
					t.Skipf("host: the kernel has no Geneve: %s", out)
				}
				n.inner = netip.MustParseAddr(fmt.Sprintf("10.7.0.%d", i+1))
				command(t, "ip", "-n", n.ns, "address", "add", n.inner.String()+"/24", "dev", "inside")
				command(t, "ip", "-n", n.ns, "link", "set", "inside", "up")
				n.socket = p.listen(n, innerPort)
			}
			if !p.visible(p.nodes[0], "off") {
				t.Error("off: packets are not visible on the wire")
			}
			p.wanted.On = true
			p.until("encrypted", func() { p.deliver("turning on") })
			if p.visible(p.nodes[0], "encrypted") {
				t.Error("encrypted: packets can be read on the wire")
			}
			if text := strings.Repeat("full ", 278); !p.tunneled(p.nodes[0], p.nodes[1], text, arrivalTime) {
				t.Errorf("a packet of %d bytes is lost", len(text))
			}
			p.wanted.Rotation++
			p.while("another key", func() { p.deliver("rotating") }, func() bool { return p.state.Stage() == Encrypted && p.state.Generation == 2 })
			p.wanted.On = false
			p.until("off", func() { p.deliver("turning off") })
			p.checkRemoved()
		})
	}
}
