package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) costCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cost", Short: "Show what usage costs", Args: cobra.NoArgs,
		Long: "What the usage of a period costs, by project, resource or meter. Commitments, the minimum of the price book and\n" +
			"taxes have rows of their own; the total is that of 'basalt invoice preview' for the same period."}
	period := a.periodFlags(cmd)
	by := cmd.Flags().String("by", string(api.CostByProject), "sum by project, resource or meter")
	daily := cmd.Flags().Bool("daily", false, "a row for each day (of UTC)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		p := api.ListCostsParams{Organization: a.config.Organization, By: api.CostBy(*by), Limit: 1000}
		if *daily {
			p.Step = api.CostDay
		}
		if p.From, p.To, err = period(); err != nil {
			return err
		}
		var all api.CostPage
		for {
			page, err := a.api.Costs(cmd.Context(), p)
			if err != nil {
				return err
			}
			page.Items = append(all.Items, page.Items...)
			if all, p.Continue = page, page.Continue; p.Continue == "" {
				break
			}
		}
		return a.print(all, func() table { return a.costTable(all) })
	}
	return cmd
}

func (a *App) costTable(p api.CostPage) table {
	t := table{{"FROM (UTC)", "TO", "OF", "COST (" + p.Currency + ")"}}
	for _, c := range p.Items {
		from, to := formatSpan(c.From, c.To)
		t = append(t, []string{from, to, cmp.Or(c.Name, c.Key), formatMicros(c.AmountMicros)})
	}
	for _, rest := range []struct {
		of     string
		micros int64
	}{{"commitments", p.CommitmentMicros}, {"minimum", p.MinimumMicros}, {"taxes", p.TaxMicros}} {
		if rest.micros != 0 {
			t = append(t, []string{"", "", rest.of, formatMicros(rest.micros)})
		}
	}
	return append(t, []string{"", "", "total", formatMicros(p.TotalMicros)})
}
