package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/listen"
)

// followEvery is how often the addresses of links with a role are read.
const followEvery = 3 * time.Second

// maxPaths is how many addresses for other nodes a node can have.
const maxPaths = 4

// peerAddresses returns the addresses for other nodes: those given as HOST:PORT, and one
// address for each declared link whose role is given as ROLE:PORT. The first given is the
// main path.
func peerAddresses(given []string, withRole func(hostnet.Role) []netip.Addr) (all []string) {
	add := func(address string) {
		if len(all) < maxPaths && !slices.Contains(all, address) { // a link can have two roles
			all = append(all, address)
		}
	}
	for _, text := range given {
		role, port, ok := listen.ParseRole(text)
		if !ok {
			add(text)
			continue
		}
		for _, a := range withRole(role) {
			add(net.JoinHostPort(a.String(), strconv.Itoa(int(port))))
		}
	}
	return all
}

// linkAddresses returns the present address of each declared link with the role: its first
// static one, or else the first that it has been assigned.
func linkAddresses(c config, n *hostnet.Network, role hostnet.Role) (all []netip.Addr) {
	if n == nil {
		return nil
	}
	for _, l := range n.WithRole(role) {
		a := l.StaticAddress()
		if !a.IsValid() {
			now := addressesOf(c, n, l)
			i := slices.IndexFunc(now, netip.Addr.IsGlobalUnicast)
			if i < 0 {
				continue
			}
			a = now[i]
		}
		all = append(all, a.Unmap().WithZone(""))
	}
	return all
}

// errNoNetwork is the error of a role where no network is declared.
var errNoNetwork = errors.New("--peer-listen names a role, but no network is declared: write an address, or declare the network (docs/node-network.md)")

// presentPeerAddresses returns the addresses for other nodes in the network that is in force.
func presentPeerAddresses(c config) ([]string, error) {
	n, _, err := inForce(c)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, errNoNetwork
	}
	return peerAddresses(c.peerGiven, func(role hostnet.Role) []netip.Addr { return linkAddresses(c, n, role) }), nil
}

// awaitPeerAddresses sets the addresses for other nodes. It waits until links with the given
// roles have some: DHCP takes time at a start.
func awaitPeerAddresses(ctx context.Context, c config, log *slog.Logger) (config, error) {
	if !slices.ContainsFunc(c.peerListen, func(a string) bool { _, _, ok := listen.ParseRole(a); return ok }) {
		return c, nil
	}
	c.peerGiven = c.peerListen
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for said := false; ; said = true {
		all, err := presentPeerAddresses(c)
		switch {
		case errors.Is(err, errNoNetwork):
			return c, err
		case err == nil && len(all) > 0:
			c.peerListen = all
			return c, nil
		}
		if !said {
			log.Warn("waiting for an address for other nodes", "peer-listen", fmt.Sprint(c.peerGiven), "error", err)
		}
		select {
		case <-ctx.Done():
			return c, ctx.Err()
		case <-tick.C:
		}
	}
}

// followPeerAddresses opens everything again when there is a new address for other nodes: a
// lease of DHCP, another declared network, a rollback. One that is gone is a path that fails.
func (cl *cluster) followPeerAddresses(c config) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
			now, err := presentPeerAddresses(c)
			isNew := func(a string) bool { return !slices.Contains(c.peerListen, a) }
			if err != nil || !slices.ContainsFunc(now, isNew) {
				continue
			}
			cl.log.Warn("addresses for other nodes changed", "from", fmt.Sprint(c.peerListen), "to", fmt.Sprint(now))
			cl.requestRestart(errBeginAnew)
			return nil
		}
	}
}
