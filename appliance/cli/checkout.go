package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// checkouts describes online payments.
func (a *App) checkouts() *kind[api.Checkout] {
	return &kind[api.Checkout]{
		app: a, noun: "checkout", about: "Online payments that are under way, or were lately",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "AMOUNT", "INVOICE", "STATE", "NOTE"},
		row: func(c api.Checkout) []string {
			return []string{a.named(c.Meta.Organization), formatMicros(c.Spec.AmountMicros) + " " + c.Spec.Currency, string(c.Spec.Invoice),
				strings.ToLower(string(cmp.Or(c.Status.State, api.CheckoutOpening))), c.Status.LastError}
		},
		detail: func(c api.Checkout) (d detail) {
			d.add("url", c.Status.URL)
			d.add("payment", string(c.Status.Payment))
			return d
		},
		more: []*cobra.Command{a.checkoutCreateCommand()},
	}
}

func (a *App) checkoutCreateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "create [AMOUNT]", Short: "Begin an online payment, in advance or of an invoice", Args: cobra.MaximumNArgs(1),
		Long: "Prints the address of a page of the payment provider, on which it can be paid for an hour.\n" +
			"With --invoice and without AMOUNT, what is left of the invoice is paid.\n" +
			"With --card a payment card on file is charged at once, and no page is opened.",
		Example: "  basalt checkout create 50 --organization acme\n  basalt checkout create --invoice INV-000042\n  basalt checkout create 50 --card default"}
	invoice := cmd.Flags().String("invoice", "", "number or ID of the invoice to pay")
	card := cmd.Flags().String("card", "", "ID of the payment card on file to charge, or default")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c := api.Checkout{Meta: api.Meta{Organization: a.config.Organization}, Spec: api.CheckoutSpec{Invoice: api.InvoiceID(*invoice)}}
		if len(args) == 0 && *invoice == "" {
			return usagef("AMOUNT or --invoice is required")
		}
		var err error
		if len(args) == 1 {
			if c.Spec.AmountMicros, err = parseMicros(args[0]); err != nil {
				return err
			}
		}
		if c.Spec.Card, err = a.cardOf(cmd.Context(), *card); err != nil {
			return err
		}
		if c, err = client.Of[api.Checkout](a.api).Create(cmd.Context(), c); err != nil {
			return err
		}
		if a.flags.output != "table" || c.Spec.Card != "" {
			return a.checkouts().printOne(cmd.Context(), c)
		}
		fmt.Fprintln(a.Out, c.Status.URL)
		fmt.Fprintf(a.Err, "open this address to pay %s %s; afterwards: basalt checkout get %s\n", formatMicros(c.Spec.AmountMicros), c.Spec.Currency, c.Meta.ID)
		return nil
	}
	return cmd
}

// cardOf returns the ID of a card: of the organization's default card for "default".
func (a *App) cardOf(ctx context.Context, ref string) (api.CardID, error) {
	if ref != "default" {
		return api.CardID(ref), nil
	}
	for c, err := range client.Of[api.Card](a.api).All(ctx, client.Query{Organization: a.config.Organization}) {
		if err != nil {
			return "", err
		}
		if c.Status.Default {
			return api.CardID(c.Meta.ID), nil
		}
	}
	return "", usagef("there is no default payment card: see basalt card list")
}

func (a *App) paymentSettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "payment-settings", Short: "Payment provider for online payments"}
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show the payment settings, without the secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.PaymentSettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printPaymentSettings(s)
		},
	}, a.paymentSettingsSet())
	return cmd
}

func (a *App) paymentSettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the payment settings; others are kept", Args: cobra.NoArgs,
		Long:    "With --secrets the secret key and the signing secret of the webhook endpoint are asked for, or read from a pipe, one a line;\nan empty line leaves one as it is. For operators.",
		Example: "  basalt payment-settings set --enable --secrets --portal-url https://cloud.example.com"}
	f := cmd.Flags()
	portal := f.String("portal-url", "", "where the portal is, to which the provider's page leads back")
	least, most := f.String("min", "", "the least that is paid in advance at once"), f.String("max", "", "the most that is paid at once")
	secrets := f.Bool("secrets", false, "ask for the secret key (sk_...) and the signing secret (whsec_...)")
	fees := f.Bool("charge-dispute-fees", false, "charge the provider's fee for a dispute to the customer; =false: do not")
	enable, disable := f.Bool("enable", false, "take online payments"), f.Bool("disable", false, "begin no online payments")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.api.PaymentSettings(cmd.Context())
		if err != nil {
			return err
		}
		was := s
		if f.Changed("portal-url") {
			s.PortalURL = *portal
		}
		if f.Changed("charge-dispute-fees") {
			s.ChargeDisputeFees = *fees
		}
		if *enable || *disable {
			s.Enabled = *enable
		}
		for text, to := range map[*string]*int64{least: &s.MinMicros, most: &s.MaxMicros} {
			if *text != "" {
				if *to, err = parseMicros(*text); err != nil {
					return err
				}
			}
		}
		if *secrets {
			in := bufio.NewReader(a.In)
			if s.SecretKey, err = a.secret(in, "Secret key: "); err != nil {
				return err
			}
			if s.WebhookSecret, err = a.secret(in, "Signing secret: "); err != nil {
				return err
			}
		}
		if s, err = a.api.PatchPaymentSettings(cmd.Context(), client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printPaymentSettings(s)
	}
	return cmd
}

func (a *App) printPaymentSettings(s api.PaymentSettings) error {
	return a.print(s, func() table {
		state := "disabled"
		switch {
		case s.Status.Attempts > 0:
			state = fmt.Sprintf("retrying (%d)", s.Status.Attempts)
		case s.Enabled:
			state = "enabled"
		}
		secrets := "missing"
		if s.HasSecretKey && s.HasWebhookSecret {
			secrets = "set"
		}
		return table{{"STATE", "PROVIDER", "SECRETS", "PORTAL", "MIN", "MAX", "NOTE"},
			{state, string(s.Provider), secrets, s.PortalURL, formatMicros(s.MinMicros), formatMicros(s.MaxMicros), s.Status.LastError}}
	})
}
