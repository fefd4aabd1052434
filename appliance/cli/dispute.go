package cli

import (
	"github.com/basalt-gpu/basalt/api"
)

// disputes describes disputes of online payments.
func (a *App) disputes() *kind[api.Dispute] {
	return &kind[api.Dispute]{
		app: a, noun: "dispute", about: "Online payments that were disputed at the customer's bank",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "PAYMENT", "AMOUNT", "WITHDRAWN", "STATE", "RESPOND BY", "REASON"},
		row: func(d api.Dispute) []string {
			by := "-"
			if d.Status.RespondBy != nil && !d.Status.State.Ended() {
				by = formatTime(*d.Status.RespondBy)
			}
			return []string{a.named(d.Meta.Organization), string(d.Spec.Payment), formatMicros(d.Spec.AmountMicros) + " " + d.Spec.Currency,
				formatMicros(d.Status.WithdrawnMicros), string(d.Status.State), by, d.Spec.Reason}
		},
		detail: func(x api.Dispute) (d detail) {
			d.add("provider's ID", x.Spec.ProviderDispute)
			d.add("payment card", string(x.Status.Card))
			if x.Status.FeeMicros > 0 {
				d.add("fee", formatMicros(x.Status.FeeMicros))
			}
			return d
		},
	}
}
