package main

import (
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
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

// declaredTunnel returns the address of the link with role tunnel, or "".
func declaredTunnel(c config) string {
	n, ok := declared(c)
	if !ok {
		return ""
	}
	for _, l := range n.WithRole(hostnet.Tunnel) {
		if a := l.StaticAddress(); a.IsValid() {
			return a.String()
		}
		device, ok := trial.Device(&n, l)
		if !ok {
			continue
		}
		all, err := device.Addrs()
		if err != nil {
			continue
		}
		for _, a := range all {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
				return p.Addr().String()
			}
		}
	}
	return ""
}

// mtu implements the agent's Options.NetworkMTU: it returns the largest MTU that fits into
// tunnels through the interface with their address, or 0.
func (f *fabric) mtu() int64 {
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
				return api.TunneledMTU(p.Addr(), i.MTU)
			}
		}
	}
	return 0
}
