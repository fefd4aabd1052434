package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// refunds describes refunds of payments.
func (a *App) refunds() *kind[api.Refund] {
	return &kind[api.Refund]{
		app: a, noun: "refund", about: "Refunds of payments",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "PAYMENT", "AMOUNT", "STATE", "REASON", "NOTE"},
		row: func(r api.Refund) []string {
			return []string{a.named(r.Meta.Organization), string(r.Spec.Payment), formatMicros(r.Spec.AmountMicros) + " " + r.Spec.Currency,
				strings.ToLower(string(cmp.Or(r.Status.State, api.RefundPending))), r.Spec.Reason, r.Status.LastError}
		},
		detail: func(r api.Refund) (d detail) {
			d.add("reference", cmp.Or(r.Spec.Reference, r.Status.ProviderRefund))
			d.add("entry", string(r.Status.Entry))
			d.add("reversal", string(r.Status.Reversal))
			return d
		},
		more: []*cobra.Command{a.refundCreateCommand()},
	}
}

func (a *App) refundCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create PAYMENT [AMOUNT]", Short: "Refund a payment, or a part of it", Args: cobra.RangeArgs(1, 2),
		Long: "An online payment is refunded through the payment provider. Other payments are refunded by hand: --reference is that of the transfer.\n" +
			"Without AMOUNT, what is left of the payment is refunded. The customer gets mail with the reason.",
		Example: "  basalt refund create pay-4f9c2a7be01d 12.50 --reason 'outage on Monday'\n  basalt refund create pay-4f9c2a7be01d --reason 'paid twice' --reference bank-2026-0099"}
	reason := cmd.Flags().String("reason", "", "why the payment is refunded; the customer reads it")
	manual := cmd.Flags().Bool("manual", false, "the money was returned without the payment provider")
	reference := cmd.Flags().String("reference", "", "reference of the transfer, for a refund by hand")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := api.Refund{Meta: api.Meta{Organization: a.config.Organization}, Spec: api.RefundSpec{Payment: api.PaymentID(args[0]), Reason: *reason, Manual: *manual, Reference: *reference}}
		var err error
		if len(args) == 2 {
			if r.Spec.AmountMicros, err = parseMicros(args[1]); err != nil {
				return err
			}
		}
		if r, err = client.Of[api.Refund](a.api).Create(cmd.Context(), r); err != nil {
			return err
		}
		return a.refunds().printOne(cmd.Context(), r)
	}
	return cmd
}
