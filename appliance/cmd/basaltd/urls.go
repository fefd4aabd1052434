package main

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/appliance/store"
)

// openURLs decides which addresses that tenants choose may be reached.
func (n *node) openURLs(c config) (err error) {
	if n.urls.Allow, err = prefixes("--url-network", c.urlNetworks); err != nil {
		return err
	}
	n.urls.Refuse, err = prefixes("--no-url-network", c.noURLNetworks)
	n.urls.Own = (&nodeAddresses{store: n.store}).all
	return err
}

// nodeAddresses are those that the cluster's nodes have reported, read again when
// they are older than a few seconds.
type nodeAddresses struct {
	store interface {
		List(context.Context, api.ListQuery) (api.ListPage, error)
	}
	mu   sync.Mutex // guards what is below
	last []netip.Addr
	at   time.Time
}

func (a *nodeAddresses) all() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.at.IsZero() || now.Sub(a.at) > 5*time.Second {
		if found, err := a.read(); err == nil {
			a.last, a.at = found, now
		}
	}
	return a.last
}

// read what this node knows, and ask nobody.
func (a *nodeAddresses) read() (out []netip.Addr, err error) {
	for q := (api.ListQuery{Kind: api.KindNode, Limit: 1000}); ; {
		p, err := a.store.List(store.Stale(context.Background()), q)
		if err != nil {
			return nil, err
		}
		for _, o := range p.Items {
			n, err := api.Decode[api.Node](o)
			if err != nil {
				return nil, err
			}
			for _, address := range append([]string{n.Spec.APIAddress}, n.Spec.PeerAddresses...) {
				if ap, err := netip.ParseAddrPort(address); err == nil { // a name's address is not known here
					out = append(out, ap.Addr().Unmap().WithZone(""))
				}
			}
		}
		if q.Continue = p.Continue; p.Continue == "" {
			return out, nil
		}
	}
}

// imageURLs is how images are fetched.
func (n *node) imageURLs() outbound.Options { return outbound.Options{Policy: n.urls, Log: n.log} }
