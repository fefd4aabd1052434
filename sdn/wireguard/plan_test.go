package wireguard

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// TestPeers checks which reports of other nodes become peers: other nodes may report
// anything.
func TestPeers(t *testing.T) {
	good := func(n byte) string { return key{n}.String() }
	report := func(address, public string) Report {
		r := Report{Keys: []Key{{Generation: 4, Public: "old"}, {Generation: 5, Public: public}}}
		if address != "" {
			r.Address = netip.MustParseAddr(address)
		}
		return r
	}
	in := Intent{Node: "a", Address: netip.MustParseAddr("192.0.2.1"), State: State{Send: 5}}
	for i, r := range []Report{
		report("192.0.2.2", good(2)),
		report("192.0.2.3", "no key"), report("192.0.2.4", good(4)+"AA=="), report("192.0.2.5", ""),
		{Address: netip.MustParseAddr("192.0.2.6")},
		report("", good(7)), report("2001:db8::8", good(8)), report("0.0.0.0", good(9)), report("224.0.0.1", good(10)), report("127.0.0.1", good(11)),
		report("192.0.2.1", good(12)),                                  // this node's own
		report("192.0.2.13", good(13)), report("192.0.2.14", good(13)), // the same key
		report("192.0.2.15", good(15)), report("192.0.2.15", good(16)), // the same address
		report("192.0.2.17", good(17)),
	} {
		in.Peers = append(in.Peers, Peer{Node: fmt.Sprint("n", i), Report: r})
	}
	var got []string
	for _, p := range in.peers(5) {
		got = append(got, fmt.Sprint(p.node, " ", p.endpoint, " ", p.allowed))
	}
	if want := []string{"n0 192.0.2.2:51821 192.0.2.2/32", "n15 192.0.2.17:51821 192.0.2.17/32"}; !slices.Equal(got, want) {
		t.Errorf("peers = %q, want %q", got, want)
	}
	// Packets to nodes without a usable key must not be sent in plain.
	if got := fmt.Sprint(in.routed()); got != "[192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6 192.0.2.13 192.0.2.14 192.0.2.15 192.0.2.17]" {
		t.Errorf("routed addresses = %s", got)
	}
	in.State.Send = 0
	if got := in.routed(); got != nil {
		t.Errorf("routed addresses of a node that sends in plain = %v, want none", got)
	}
}

// TestDifference checks that a peer is written only if it has to be: writing one that is
// connected could end its session.
func TestDifference(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	want := wantedPeer{node: "b", public: key{2}, endpoint: netip.MustParseAddrPort("192.0.2.2:51820"), allowed: netip.MustParsePrefix("192.0.2.2/32")}
	first, _ := difference(&wgtypes.Device{}, key{1}, 51820, []wantedPeer{want}, now)
	have := wgtypes.Device{PrivateKey: *first.PrivateKey, ListenPort: *first.ListenPort}
	p := first.Peers[0]
	present := wgtypes.Peer{PublicKey: p.PublicKey, Endpoint: p.Endpoint, AllowedIPs: p.AllowedIPs, PersistentKeepaliveInterval: *p.PersistentKeepaliveInterval}
	roamed := *p.Endpoint
	roamed.Port = 1
	change := func(f func(*wgtypes.Peer)) wgtypes.Peer { x := present; f(&x); return x }
	for _, c := range []struct {
		name  string
		peers []wgtypes.Peer
		want  int // changed peers
	}{
		{"as it was written", []wgtypes.Peer{present}, 0},
		{"a stranger", []wgtypes.Peer{present, {PublicKey: wgtypes.Key{9}}}, 1},
		{"absent", nil, 1},
		{"at another address, connected", []wgtypes.Peer{change(func(p *wgtypes.Peer) { p.Endpoint, p.LastHandshakeTime = &roamed, now.Add(-time.Minute) })}, 0},
		{"at another address, silent", []wgtypes.Peer{change(func(p *wgtypes.Peer) { p.Endpoint, p.LastHandshakeTime = &roamed, now.Add(-time.Hour) })}, 1},
		{"without an address", []wgtypes.Peer{change(func(p *wgtypes.Peer) { p.Endpoint = nil })}, 1},
		{"for other addresses", []wgtypes.Peer{change(func(p *wgtypes.Peer) { p.AllowedIPs = nil })}, 1},
	} {
		have.Peers = c.peers
		if got, any := difference(&have, key{1}, 51820, []wantedPeer{want}, now); len(got.Peers) != c.want || any != (c.want > 0) {
			t.Errorf("%s: %d changed peers, any %t; want %d", c.name, len(got.Peers), any, c.want)
		}
	}
}

// TestPrivateKey checks that a key stays, that one that is damaged is replaced, and that
// others are removed.
func TestPrivateKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if Open(dir) {
		t.Error("Open of a folder that does not exist = true, want false")
	}
	first, err := privateKey(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := privateKey(dir, 3); err != nil || again != first || !Open(dir) {
		t.Errorf("the key read again = %v, error %v, open %t; want the same", again == first, err, Open(dir))
	}
	for _, bad := range []string{"", "x", strings.Repeat("A", 43), first.String() + first.String()} {
		if err := os.WriteFile(filepath.Join(dir, "key-3"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := privateKey(dir, 3); err != nil || k == first || k == (key{}) {
			t.Errorf("key after %q: error %v, same as before %t; want another", bad, err, k == first)
		}
	}
	if _, err := privateKey(dir, 4); err != nil {
		t.Fatal(err)
	}
	if err := removeKeys(dir, []int{4}); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || files[0].Name() != "key-4" {
		t.Errorf("files after the removal = %v, error %v; want key-4", files, err)
	}
}
