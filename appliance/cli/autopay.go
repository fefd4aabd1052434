package cli

import (
	"cmp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) autoPayCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "auto-pay", Short: "Automatic payment of an organization's invoices by a payment card on file"}
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show the automatic payment, and the invoices whose charge has failed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.api.AutoPay(cmd.Context(), a.config.Organization)
			if err != nil {
				return err
			}
			return a.printAutoPay(t)
		},
	}, a.autoPaySet())
	return cmd
}

func (a *App) autoPaySet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the automatic payment; other settings are kept", Args: cobra.NoArgs,
		Long: "While enabled, each invoice is charged to the payment card when it is issued; a charge that fails is repeated\n" +
			"after one day, three and five more days. Saving the settings repeats failed charges at once.",
		Example: "  basalt auto-pay set --enable --consent --organization acme"}
	f := cmd.Flags()
	card := f.String("card", "", "ID of the payment card to charge, or default for the organization's default payment card at that time")
	consent := f.Bool("consent", false, "the payer agrees that invoices are charged to the payment card until this is disabled; required to enable it")
	enable, disable := f.Bool("enable", false, "charge invoices to a payment card automatically"), f.Bool("disable", false, "charge nothing automatically")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.api.AutoPay(cmd.Context(), a.config.Organization)
		if err != nil {
			return err
		}
		was := t
		if *enable || *disable {
			t.Enabled = *enable
		}
		t.Consent = t.Consent || *consent
		if f.Changed("card") {
			if t.Card = api.CardID(*card); *card == "default" {
				t.Card = ""
			}
		}
		if t, err = a.api.PatchAutoPay(cmd.Context(), a.config.Organization, client.MergePatch(was, t)); err != nil {
			return err
		}
		return a.printAutoPay(t)
	}
	return cmd
}

func (a *App) printAutoPay(t api.AutoPay) error {
	return a.print(t, func() table {
		consent := ""
		if t.ConsentAt != nil {
			consent = t.ConsentBy + ", " + formatTime(*t.ConsentAt)
		}
		rows := table{{"STATE", "CARD", "CONSENT", "INVOICE", "FAILURES", "NEXT", "NOTE"}}
		state, chosen := cmp.Or(string(t.Status.State), string(api.AutoPayReady)), cmp.Or(string(t.Card), "default")
		for _, i := range t.Status.Invoices {
			next := ""
			if i.NextAt != nil {
				next = formatTime(*i.NextAt)
			}
			rows = append(rows, []string{state, chosen, consent, i.Number, strconv.FormatInt(i.Failures, 10), next, i.LastError})
		}
		if len(t.Status.Invoices) == 0 {
			note := ""
			if least := t.Status.LeastMicros; least > 0 {
				note = "invoices wait for later ones: they amount to less than " + formatMicros(least)
			}
			rows = append(rows, []string{state, chosen, consent, "", "", "", note})
		}
		return rows
	})
}
