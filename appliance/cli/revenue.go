package cli

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) revenueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "revenue", Short: "Show revenue from invoices", Args: cobra.NoArgs,
		Long: "Invoices issued in a period, minus its credit notes, and payments received in it. For operators; resellers see\n" +
			"their own customers."}
	period := a.periodFlags(cmd)
	by := cmd.Flags().String("by", string(api.RevenueByMonth), "sum by month (of UTC), organization or meter")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p := api.GetRevenueParams{By: api.RevenueBy(*by)}
		var err error
		if p.From, p.To, err = period(); err != nil {
			return err
		}
		all := api.RevenuePage{Items: []api.Revenue{}}
		for {
			page, err := a.api.Revenue(cmd.Context(), p)
			if err != nil {
				return err
			}
			all.Items, all.Totals = append(all.Items, page.Items...), page.Totals
			if p.Continue = page.Continue; p.Continue == "" {
				break
			}
		}
		return a.print(all, func() table { return revenueTable(all) })
	}
	return cmd
}

func revenueTable(p api.RevenuePage) table {
	t := table{{"OF", "CURRENCY", "NET", "TAX", "CREDITED", "PAID", "INVOICES"}}
	resells := slices.ContainsFunc(p.Totals, func(r api.Revenue) bool { return r.WholesaleMicros != 0 })
	if resells {
		t[0] = append(t[0], "WHOLESALE", "MARGIN")
	}
	add := func(of string, r api.Revenue) {
		row := []string{of, r.Currency, formatMicros(r.NetMicros), formatMicros(r.TaxMicros), formatMicros(r.CreditedMicros),
			formatMicros(r.PaidMicros), strconv.FormatInt(r.Invoices, 10)}
		if resells {
			row = append(row, formatMicros(r.WholesaleMicros), formatMicros(r.NetMicros-r.WholesaleMicros))
		}
		t = append(t, row)
	}
	for _, r := range p.Items {
		add(cmp.Or(r.Name, r.Key), r)
	}
	for _, r := range p.Totals {
		add("total", r)
	}
	return t
}
