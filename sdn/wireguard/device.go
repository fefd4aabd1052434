package wireguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// configure sets the key, the port and the peers of an interface, and returns the nodes
// from which packets have arrived recently. Only differences are written, since a peer
// that is written again may lose its session.
func configure(name string, private key, port int, peers []wantedPeer, now time.Time) (connected []string, err error) {
	c, err := wgctrl.New()
	if err != nil {
		return nil, fmt.Errorf("open the control of WireGuard: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	d, err := c.Device(name)
	if err != nil {
		return nil, fmt.Errorf("read WireGuard interface %s: %w", name, err)
	}
	if change, any := difference(d, private, port, peers, now); any {
		if err := c.ConfigureDevice(name, change); err != nil {
			return nil, fmt.Errorf("configure WireGuard interface %s: %w", name, err)
		}
	}
	for _, p := range peers {
		if have, ok := find(d, p.public); ok && recent(have, now) {
			connected = append(connected, p.node)
		}
	}
	slices.Sort(connected)
	return connected, nil
}

func find(d *wgtypes.Device, public key) (wgtypes.Peer, bool) {
	n := slices.IndexFunc(d.Peers, func(p wgtypes.Peer) bool { return key(p.PublicKey) == public })
	if n < 0 {
		return wgtypes.Peer{}, false
	}
	return d.Peers[n], true
}

// recent reports whether the session with a peer is in use.
func recent(p wgtypes.Peer, now time.Time) bool {
	return !p.LastHandshakeTime.IsZero() && now.Sub(p.LastHandshakeTime) < connectedTime
}

// difference returns what to change of the interface.
func difference(d *wgtypes.Device, private key, port int, peers []wantedPeer, now time.Time) (c wgtypes.Config, any bool) {
	if key(d.PrivateKey) != private {
		k := wgtypes.Key(private)
		c.PrivateKey = &k
	}
	if d.ListenPort != port {
		c.ListenPort = &port
	}
	interval := keepAlive
	for _, p := range peers {
		allowed := net.IPNet{IP: p.allowed.Addr().AsSlice(), Mask: net.CIDRMask(p.allowed.Bits(), p.allowed.Addr().BitLen())}
		have, ok := find(d, p.public)
		// WireGuard follows a peer whose packets come from another address; only one that
		// is not heard from is sought at its own.
		if ok && onlyAllowed(have, p.allowed) && have.PersistentKeepaliveInterval == interval && (recent(have, now) || at(have, p.endpoint)) {
			continue
		}
		c.Peers = append(c.Peers, wgtypes.PeerConfig{PublicKey: wgtypes.Key(p.public), Endpoint: net.UDPAddrFromAddrPort(p.endpoint),
			PersistentKeepaliveInterval: &interval, ReplaceAllowedIPs: true, AllowedIPs: []net.IPNet{allowed}})
	}
	for _, have := range d.Peers {
		if !slices.ContainsFunc(peers, func(p wantedPeer) bool { return p.public == key(have.PublicKey) }) {
			c.Peers = append(c.Peers, wgtypes.PeerConfig{PublicKey: have.PublicKey, Remove: true})
		}
	}
	return c, c.PrivateKey != nil || c.ListenPort != nil || len(c.Peers) > 0
}

func onlyAllowed(p wgtypes.Peer, want netip.Prefix) bool {
	if len(p.AllowedIPs) != 1 {
		return false
	}
	a, ok := netip.AddrFromSlice(p.AllowedIPs[0].IP)
	bits, _ := p.AllowedIPs[0].Mask.Size()
	return ok && netip.PrefixFrom(a.Unmap(), bits) == want
}

func at(p wgtypes.Peer, want netip.AddrPort) bool {
	if p.Endpoint == nil {
		return false
	}
	have := p.Endpoint.AddrPort()
	return netip.AddrPortFrom(have.Addr().Unmap(), have.Port()) == want
}
