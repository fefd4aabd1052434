package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	nodenetwork "github.com/basalt-gpu/basalt/appliance/node/network"
)

// openURLs sets the policy for addresses that tenants choose.
func (n *node) openURLs(c config) (err error) {
	if n.urls.Allow, err = prefixes("--url-network", c.urlNetworks); err != nil {
		return err
	}
	if n.urls.Refuse, err = prefixes("--no-url-network", c.noURLNetworks); err != nil {
		return err
	}
	forbidden, err := nodenetwork.ParseForbidden(c.forbidden)
	if err != nil {
		return fmt.Errorf("--forbid: %w", err)
	}
	n.urls.Own = (&nodeAddresses{store: n.store, forbidden: forbidden}).all
	return nil
}

// nodeAddresses are the addresses that the cluster's nodes have reported, of all their
// interfaces, and the networks that their operators forbid to guests. They are read again when
// they are older than 5 seconds.
type nodeAddresses struct {
	store interface {
		List(context.Context, api.ListQuery) (api.ListPage, error)
	}
	forbidden []netip.Prefix // this node's --forbid, which is valid before anything is reported

	mu   sync.Mutex // guards what is below
	last []netip.Prefix
	at   time.Time
}

func (a *nodeAddresses) all() []netip.Prefix {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.at.IsZero() || now.Sub(a.at) > 5*time.Second {
		if found, err := a.read(); err == nil {
			a.last, a.at = found, now
		} else if a.at.IsZero() {
			return a.forbidden
		}
	}
	return a.last
}

// read returns the addresses from this node's own copy of the store.
func (a *nodeAddresses) read() ([]netip.Prefix, error) {
	out := slices.Clone(a.forbidden)
	err := each(a, api.KindNode, func(n api.Node) {
		for _, address := range append([]string{n.Spec.APIAddress}, n.Spec.PeerAddresses...) {
			if ap, err := netip.ParseAddrPort(address); err == nil { // host names are not resolved
				ip := ap.Addr().Unmap().WithZone("")
				out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var chassis []network.Chassis
	if err := each(a, api.KindChassis, func(c network.Chassis) { chassis = append(chassis, c) }); err != nil {
		return nil, err
	}
	return append(out, network.Forbidden(chassis)...), nil
}

// each calls f with all objects of a kind from this node's own copy of the store.
func each[T any](a *nodeAddresses, kind api.Kind, f func(T)) error {
	for q := (api.ListQuery{Kind: kind, Limit: 1000}); ; {
		p, err := a.store.List(store.Stale(context.Background()), q)
		if err != nil {
			return err
		}
		for _, o := range p.Items {
			v, err := api.Decode[T](o)
			if err != nil {
				return err
			}
			f(v)
		}
		if q.Continue = p.Continue; p.Continue == "" {
			return nil
		}
	}
}

// imageURLs returns the options for fetching images.
func (n *node) imageURLs() outbound.Options { return outbound.Options{Policy: n.urls, Log: n.log} }
