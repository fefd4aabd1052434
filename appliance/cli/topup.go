package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) topUpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "top-up", Short: "Automatic top-up of an organization by a payment card on file"}
	cmd.AddCommand(&cobra.Command{
		Use: "show", Short: "Show the automatic top-up and its state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.api.TopUp(cmd.Context(), a.config.Organization)
			if err != nil {
				return err
			}
			return a.printTopUp(t)
		},
	}, a.topUpSet())
	return cmd
}

func (a *App) topUpSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the automatic top-up; other settings are kept", Args: cobra.NoArgs,
		Long: "While enabled, --amount is charged when what was paid in advance, less what was used, is below --below,\n" +
			"at most --monthly-limit in a calendar month. Saving the settings also starts a top-up again that has stopped.",
		Example: "  basalt top-up set --enable --below 10 --amount 50 --monthly-limit 200 --organization acme"}
	f := cmd.Flags()
	below, amount, limit := f.String("below", "", "the remaining balance below which a payment card is charged"), f.String("amount", "", "the amount of one charge"), f.String("monthly-limit", "", "the most that is charged in a calendar month")
	card := f.String("card", "", "ID of the payment card to charge, or default for the organization's default payment card at that time")
	enable, disable := f.Bool("enable", false, "charge a payment card automatically"), f.Bool("disable", false, "charge nothing automatically")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t, err := a.api.TopUp(cmd.Context(), a.config.Organization)
		if err != nil {
			return err
		}
		was := t
		if *enable || *disable {
			t.Enabled = *enable
		}
		if f.Changed("card") {
			if t.Card = api.CardID(*card); *card == "default" {
				t.Card = ""
			}
		}
		for text, to := range map[*string]*int64{below: &t.BelowMicros, amount: &t.AmountMicros, limit: &t.MonthlyLimitMicros} {
			if *text != "" {
				if *to, err = parseMicros(*text); err != nil {
					return err
				}
			}
		}
		if t, err = a.api.PatchTopUp(cmd.Context(), a.config.Organization, client.MergePatch(was, t)); err != nil {
			return err
		}
		return a.printTopUp(t)
	}
	return cmd
}

func (a *App) printTopUp(t api.TopUp) error {
	return a.print(t, func() table {
		next := ""
		if t.Status.NextAt != nil {
			next = formatTime(*t.Status.NextAt)
		}
		return table{{"STATE", "BELOW", "AMOUNT", "MONTHLY LIMIT", "CHARGED", "CURRENCY", "CARD", "NEXT", "NOTE"},
			{cmp.Or(string(t.Status.State), string(api.TopUpReady)), formatMicros(t.BelowMicros), formatMicros(t.AmountMicros), formatMicros(t.MonthlyLimitMicros),
				formatMicros(t.Status.ChargedMicros), t.Currency, cmp.Or(string(t.Card), "default"), next, t.Status.LastError}}
	})
}
