package main

import (
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
)

// declared is the network of an installed node that is in force; false: none is declared,
// or this basaltd runs beside whatever else its machine does.
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

// declaredTunnel is the address of the link with role tunnel; empty: there is none.
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

// mtu is the agent's Options.NetworkMTU: what fits through the interface that has the
// address at which tunnels end.
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
