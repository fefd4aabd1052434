package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

// alertsCommand exits with 1 when an alert is critical, for use from cron.
func (a *App) alertsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "alerts", Short: "Show active alerts and how to resolve them", Args: cobra.NoArgs,
		Long: "Lists the most severe alerts first. Exits with 1 if one is critical: something does not work, or the next\n" +
			"failure stops it. For operators.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []api.Alert{}
			critical := false
			for x, err := range a.api.Alerts(cmd.Context()) {
				if err != nil {
					return err
				}
				found = append(found, x)
				critical = critical || x.Severity == api.AlertCritical
			}
			if len(found) == 0 && a.flags.output == "table" {
				fmt.Fprintln(a.Out, "no active alerts")
				return nil
			}
			err := a.print(found, func() table {
				t := table{{"SEVERITY", "CODE", "SINCE", "MESSAGE", "HINT"}}
				for _, x := range found {
					since := ""
					if x.Since != nil {
						since = formatTime(*x.Since)
					}
					t = append(t, []string{string(x.Severity), string(x.Code), since, x.Message, x.Hint})
				}
				return t
			})
			if err == nil && critical {
				err = exitCode(1)
			}
			return err
		},
	}
}
