package main

import (
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
)

// declared returns the confirmed network of an installed node. It returns false if none is
// declared, or if this basaltd is not the installed one.
func declared(c config) (hostnet.Network, bool) {
	if c.run != installed {
		return hostnet.Network{}, false
	}
	s, err := trial.Read(trial.System)
	if err != nil || s.Confirmed == nil {
		return hostnet.Network{}, false
	}
	n, err := hostnet.Parse(s.Confirmed)
	return n, err == nil
}

// declaredAddress returns the first address of the first link with the role that has one, or
// the zero Addr.
func declaredAddress(c config, role hostnet.Role) netip.Addr {
	n, ok := declared(c)
	if !ok {
		return netip.Addr{}
	}
	for _, l := range n.WithRole(role) {
		if a := l.StaticAddress(); a.IsValid() {
			return a
		}
		for _, a := range addressesOf(c, &n, l) {
			if a.IsGlobalUnicast() {
				return a
			}
		}
	}
	return netip.Addr{}
}

// links implements the agent's Options.Links.
func (f *fabric) links(c config) func() agent.Links {
	return func() agent.Links {
		l := agent.Links{MTU: f.mtu(), Storage: declaredAddress(c, hostnet.Storage)}
		if !f.node.Encap.IsLoopback() {
			l.Tunnel = f.node.Encap
		}
		return l
	}
}

// limitTo remembers the largest packets that have arrived at the other nodes' ends of
// tunnels, in bytes; 0: nothing is known.
func (f *fabric) limitTo(paths []hardware.Path, tunnels map[string]bool) {
	var least int
	for _, p := range paths {
		if tunnels[p.Address] && p.MTU > 0 && p.MTU < p.LocalMTU && (least == 0 || p.MTU < least) {
			least = p.MTU
		}
	}
	f.narrowest.Store(int64(least))
}

// mtu returns the largest MTU of a network that fits into tunnels through the interface with
// their address and through the paths that were measured, or 0 if it is unknown.
func (f *fabric) mtu() int64 {
	size := f.packetSize()
	if size == 0 {
		return 0
	}
	stage, _ := f.node.Encryption() // while it is turned on too: it would not fit soon
	return api.TunneledMTU(f.node.Encap, size, stage != "")
}

// packetSize returns the largest size in bytes of packets that can be sent from the tunnels'
// address and that arrive at the other nodes, or 0 if it is unknown.
func (f *fabric) packetSize() int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == f.node.Encap {
				size := i.MTU
				if measured := int(f.narrowest.Load()); measured > 0 {
					size = min(size, measured)
				}
				return size
			}
		}
	}
	return 0
}
