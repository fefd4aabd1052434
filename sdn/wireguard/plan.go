package wireguard

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Intent is what one node is to carry out.
type Intent struct {
	// Node is this node's ID, and Address the end of its tunnels.
	Node    string
	Address netip.Addr
	// MTU is the MTU of the interface that has the address, in bytes; 0: 1500.
	MTU   int
	State State
	Peers []Peer // the other nodes, in the order of their IDs
	// Userspace is set if Open vSwitch forwards in user space.
	Userspace bool
}

// Peer is another node.
type Peer struct {
	Node, Name string
	Report     Report
	Lost       bool // it need not answer
}

// connectedTime is how long after a handshake a session is used; after that WireGuard
// makes no use of it (REJECT_AFTER_TIME, section 6.1 of its paper), and keepAlive renews
// it before.
const (
	connectedTime = 180 * time.Second
	keepAlive     = 15 * time.Second
)

// wantedPeer is a peer of an interface.
type wantedPeer struct {
	node     string
	public   key
	endpoint netip.AddrPort
	allowed  netip.Prefix
}

// key is a public or a private key.
type key [32]byte

func parseKey(text string) (k key, err error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(k) {
		return k, fmt.Errorf("key %.60q is not 32 bytes in base64", text)
	}
	return key(raw), nil
}

func (k key) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// usable reports whether packets can be sent to the address from this node's.
func (in Intent) usable(a netip.Addr) bool {
	return a.IsValid() && a.Is4() == in.Address.Is4() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && a != in.Address
}

// peers returns the peers of the interface of a generation. A key or an address that two
// nodes report belongs to neither, as WireGuard has room for one.
func (in Intent) peers(generation int) []wantedPeer {
	keys, addresses := map[key]int{}, map[netip.Addr]int{}
	var all []wantedPeer
	for _, p := range in.Peers {
		k, ok := p.Report.Key(generation)
		if !ok || !in.usable(p.Report.Address) {
			continue
		}
		public, err := parseKey(k.Public)
		if err != nil {
			continue
		}
		keys[public]++
		addresses[p.Report.Address]++
		all = append(all, wantedPeer{node: p.Node, public: public, endpoint: netip.AddrPortFrom(p.Report.Address, PortOf(generation)),
			allowed: netip.PrefixFrom(p.Report.Address, p.Report.Address.BitLen())})
	}
	return slices.DeleteFunc(all, func(p wantedPeer) bool { return keys[p.public] > 1 || addresses[p.endpoint.Addr()] > 1 })
}

// routed returns the addresses to which tunnels are sent through WireGuard, sorted: those
// of nodes without a key too, whose packets it drops.
func (in Intent) routed() []netip.Addr {
	if in.State.Send == 0 {
		return nil
	}
	var all []netip.Addr
	for _, p := range in.Peers {
		if in.usable(p.Report.Address) {
			all = append(all, p.Report.Address)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// Waiting returns why the node does not exchange encrypted packets with all others, for
// people; "" if it does.
func Waiting(in Intent, own Report) string {
	switch {
	case !in.State.On():
		return ""
	case own.Problem != "":
		return own.Problem
	}
	generation := in.State.Generation
	mine, _ := own.Key(generation)
	var keys, silent []string
	for _, p := range in.Peers {
		switch _, has := p.Report.Key(generation); {
		case p.Lost:
		case !has:
			keys = append(keys, p.Name)
		case !slices.Contains(mine.Connected, p.Node):
			silent = append(silent, fmt.Sprintf("%s (%s)", p.Name, netip.AddrPortFrom(p.Report.Address, PortOf(generation))))
		}
	}
	var why []string
	if len(keys) > 0 {
		why = append(why, "no key yet from "+few(keys)+": the condition of that node has the reason")
	}
	if len(silent) > 0 {
		why = append(why, "no encrypted packets yet from "+few(silent)+fmt.Sprintf(": UDP ports %d and %d must be open between the nodes", Ports[0], Ports[1]))
	}
	return strings.Join(why, "; ")
}

// few joins the first names.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
