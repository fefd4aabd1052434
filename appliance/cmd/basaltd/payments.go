package main

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/invoicing"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment"
	"github.com/basalt-gpu/basalt/appliance/controlplane/payment/stripe"
)

// payments returns the service for card payments, which writes to the given store.
func (n *node) payments(s payment.Store) *payment.Service {
	client := stripe.NewClient(n.urls)
	billing := invoicing.Billing{Store: n.store}
	return payment.New(payment.Options{Store: s, Open: n.sealed.Open, Log: n.log, Wallet: billing.Wallet, Owed: billing.Owed, Provider: func(s api.PaymentSettingsSpec) (payment.Provider, error) {
		return stripe.New(s, client, ""), nil
	}})
}
