package main

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/seal"
	"github.com/basalt-gpu/basalt/appliance/store"
	"github.com/basalt-gpu/basalt/appliance/webhook"
)

// webhooks is what delivers events in a term in which this node leads.
func (n *node) webhooks(c config, sealed *seal.Keep) (func(term) *webhook.Deliverer, error) {
	var allow []netip.Prefix
	for _, s := range c.webhookNetworks {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("--webhook-network %s: want an address and a length, as 192.0.2.0/24", s)
		}
		allow = append(allow, p.Masked())
	}
	return func(in term) *webhook.Deliverer {
		return webhook.New(webhook.Options{Store: hookTerm{in}, Open: sealed.Open, Allow: allow, Log: n.log})
	}, nil
}

// hookTerm is the store of one term for webhooks: the leader has all that was
// acknowledged, so that it asks nobody before it reads.
type hookTerm struct{ term }

func (t hookTerm) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	return t.store.Get(store.Stale(ctx), kind, id)
}

func (t hookTerm) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	return t.store.List(store.Stale(ctx), q)
}

func (t hookTerm) Events(ctx context.Context, q api.EventQuery) (api.EventPage, error) {
	return t.store.Events(store.Stale(ctx), q)
}

func (t hookTerm) Revision() int64 { return t.store.Revision() }
