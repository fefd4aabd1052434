package network

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/google/go-cmp/cmp"
)

func TestUnit(t *testing.T) {
	got := Unit(Card("eno1", "52:54:00:00:00:01", answers.Path{Address: netip.MustParsePrefix("192.0.2.11/24")}, netip.MustParseAddr("192.0.2.1"), false), []netip.Addr{netip.MustParseAddr("192.0.2.53")})
	want := `[Match]
MACAddress=52:54:00:00:00:01
Type=ether
Kind=!*

[Link]
MTUBytes=1500

[Network]
Address=192.0.2.11/24
Gateway=192.0.2.1
DNS=192.0.2.53
IPv6AcceptRA=no
ConfigureWithoutCarrier=yes
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unit: mismatch (-want +got):\n%s", d)
	}
	got = Unit(Card("eno1", "52:54:00:00:00:01", answers.Path{DHCP: true}, netip.Addr{}, true), nil)
	want = `[Match]
MACAddress=52:54:00:00:00:01
Type=ether
Kind=!*

[Link]
MTUBytes=1500

[Network]
DHCP=ipv4
IPv6AcceptRA=no
KeepConfiguration=dhcp

[DHCPv4]
ClientIdentifier=mac
UseHostname=no
UseGateway=no
UseDNS=no
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unit: mismatch (-want +got):\n%s", d)
	}
}

var (
	own    = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	other  = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	target = netip.MustParseAddr("192.0.2.11")
)

func TestOwner(t *testing.T) {
	reply := request(other, target, netip.MustParseAddr("192.0.2.12"))
	reply[7] = 2
	for name, c := range map[string]struct {
		packet []byte
		owned  bool
	}{
		"a reply":                {reply, true},
		"a gratuitous claim":     {request(other, target, target), true},
		"another's probe":        {request(other, netip.Addr{}, target), true},
		"our own probe":          {request(own, netip.Addr{}, target), false},
		"a question about it":    {request(other, netip.MustParseAddr("192.0.2.12"), target), false},
		"about somebody else":    {request(other, netip.Addr{}, netip.MustParseAddr("192.0.2.12")), false},
		"a short packet":         {reply[:27], false},
		"another kind of packet": {append([]byte{0, 6}, reply[2:]...), false},
	} {
		if mac, owned := owner(c.packet, own, target); owned != c.owned || owned && mac.String() != other.String() {
			t.Errorf("%s: owner = %v, %v; want %v, %v", name, mac, owned, other, c.owned)
		}
	}
}

func FuzzOwner(f *testing.F) {
	f.Add(request(other, target, target))
	f.Fuzz(func(t *testing.T, packet []byte) {
		if mac, ok := owner(packet, own, target); ok && len(mac) != 6 {
			t.Fatalf("owner's MAC address %v has %d bytes, want 6", mac, len(mac))
		}
	})
}

func TestParseLease(t *testing.T) {
	var up Up
	parseLease("# private\nADDRESS=192.0.2.11\nROUTER=192.0.2.1 192.0.2.2\nDNS=192.0.2.53 evil;rm 192.0.2.54\nROUTER2=x\n", &up)
	if up.Gateway != netip.MustParseAddr("192.0.2.1") || fmt.Sprint(up.DNS) != "[192.0.2.53 192.0.2.54]" {
		t.Errorf("parsed lease = %+v, want the first gateway and the valid DNS servers", up)
	}
}

func FuzzParseLease(f *testing.F) {
	f.Add("ROUTER=192.0.2.1\nDNS=1.1.1.1 ::1%x\n")
	f.Fuzz(func(t *testing.T, data string) {
		var up Up
		parseLease(data, &up)
		if len(up.DNS) > 3 {
			t.Fatalf("parsed lease = %+v, want at most 3 DNS servers", up)
		}
	})
}

// TestAskRealNeighbour uses real ARP between two network namespaces.
func TestAskRealNeighbour(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("host: network namespaces need root")
	}
	ns := fmt.Sprintf("bslt-arp-%d", os.Getpid())
	here, there := fmt.Sprintf("ba%d", os.Getpid()), fmt.Sprintf("bb%d", os.Getpid())
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("host: ip %v: %s", args, out)
		}
	}
	ip("netns", "add", ns)
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", here).Run()
		_ = exec.Command("ip", "netns", "del", ns).Run()
	})
	ip("link", "add", here, "type", "veth", "peer", "name", there)
	ip("link", "set", there, "netns", ns)
	ip("link", "set", here, "up")
	ip("-n", ns, "addr", "add", "192.0.2.77/24", "dev", there)
	ip("-n", ns, "link", "set", there, "up")
	ctx := context.Background()
	if !await(ctx, 10*time.Second, func() bool { return carrier(here) }) {
		t.Fatal("the link has no carrier after 10 s, want one")
	}
	mac, err := ask(ctx, here, netip.Addr{}, netip.MustParseAddr("192.0.2.77"))
	if err != nil || mac == nil {
		t.Fatalf("ask for an address in use = %v, %v; want its MAC address", mac, err)
	}
	if mac, err := ask(ctx, here, netip.Addr{}, netip.MustParseAddr("192.0.2.78")); err != nil || mac != nil {
		t.Fatalf("ask for a free address = %v, %v; want none", mac, err)
	}
}

func certificate(t *testing.T, name string, parent *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: parent == nil, BasicConstraintsValid: true}
	if parent == nil {
		parent, key = c, k
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &k.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, k
}

func TestReach(t *testing.T) {
	ca, caKey := certificate(t, "ca", nil, nil)
	node, nodeKey := certificate(t, "node", ca, caKey)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{node.Raw, ca.Raw}, PrivateKey: nodeKey}}, NextProtos: []string{"basalt-join/1"}, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	sum := sha256.Sum256(ca.Raw)
	tok := answers.Token{CA: hex.EncodeToString(sum[:]), Peers: []string{closed.Addr().String(), l.Addr().String()}}
	now := time.Now()
	checks := Reach(context.Background(), tok, now)
	if len(checks) != 2 || checks[0].Outcome != Warning || checks[1].Outcome != OK || Failed(checks) {
		t.Errorf("checks = %+v, want a warning and a success", checks)
	}
	tok.Expires, tok.CA = now.Add(-time.Minute), hex.EncodeToString(make([]byte, 32))
	checks = Reach(context.Background(), tok, now)
	if len(checks) != 4 || !Failed(checks) {
		t.Errorf("checks with a member of another cluster = %+v, want 4 with a failure", checks)
	}
}
