package main

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/mail"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/webhook"
)

// webhooks returns the deliverer of events for a term in which this node is the leader.
func (n *node) webhooks(in term) *webhook.Deliverer {
	return webhook.New(webhook.Options{Store: hookTerm{in}, Open: n.sealed.Open, URLs: n.urls, Log: n.log})
}

// mailer returns the mailer for a term in which this node is the leader.
func (n *node) mailer(in term) *mail.Mailer {
	return mail.New(mail.Options{Store: hookTerm{in}, Open: n.sealed.Open, Alerts: n.api.Alerts, InvoicePDF: invoicing.Billing{Store: n.store}.InvoicePDF, Log: n.log})
}

// bounces returns the reader of returned mail for a term in which this node is the leader.
func (n *node) bounces(in term) *mail.Bounces {
	return mail.NewBounces(mail.Options{Store: hookTerm{in}, Open: n.sealed.Open, Log: n.log})
}

// hookTerm is the store of one term for webhooks and mail. The leader has everything that was
// acknowledged, so reads need no other node.
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
