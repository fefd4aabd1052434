package cli

import (
	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) usageCommand() *cobra.Command {
	q := api.UsageQuery{Limit: 1000}
	cmd := &cobra.Command{Use: "usage", Short: "Show total usage", Args: cobra.NoArgs}
	period := a.periodFlags(cmd)
	by := cmd.Flags().String("by", string(api.ByTotal), "sum by hour, day, month (of UTC) or total")
	meter := cmd.Flags().String("meter", "", "filter by meter, e.g. gpu-nanoseconds")
	cmd.Flags().StringVar(&q.Resource, "resource", "", "filter by resource ID")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if q.From, q.To, err = period(); err != nil {
			return err
		}
		q.By, q.Meter, q.Organization, q.Project = api.UsageBy(*by), api.Meter(*meter), a.config.Organization, a.config.Project
		all := api.UsagePage{Items: []api.UsageSum{}}
		for {
			page, err := a.api.Usage(cmd.Context(), q)
			if err != nil {
				return err
			}
			all.Items = append(all.Items, page.Items...)
			if q.Continue = page.Continue; q.Continue == "" {
				break
			}
		}
		return a.print(all, func() table { return a.usageTable(all.Items) })
	}
	cmd.AddCommand(a.usageExportCommand())
	return cmd
}

func (a *App) usageTable(all []api.UsageSum) table {
	t := table{{"FROM (UTC)", "TO", "METER", "RESOURCE", "QUANTITY"}}
	for _, u := range all {
		from, to := formatSpan(u.From, u.To)
		t = append(t, []string{from, to, string(u.Meter), a.namedResource(u.ResourceName, u.Resource), formatQuantity(u.Meter, u.Quantity)})
	}
	return t
}

func (a *App) usageExportCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "export", Short: "Export usage as CSV", Args: cobra.NoArgs,
		Long: "csv: usage per hour. focus: costs in the columns of FOCUS 1.2, a row for each line of an invoice; months without an invoice are rated as they are now."}
	period := a.periodFlags(cmd)
	format := cmd.Flags().String("format", string(api.ExportCSV), "csv or focus")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, to, err := period()
		if err != nil {
			return err
		}
		return a.api.ExportUsage(cmd.Context(), a.config.Organization, from, to, api.ExportFormat(*format), a.Out)
	}
	return cmd
}
