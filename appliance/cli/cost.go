package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func costCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cost NAME|ID", Short: "Show what an instance costs an hour, and what it has cost this month", Args: cobra.ExactArgs(1),
		Long: "Shows the price of an hour in which the instance runs, with its root volume, and what its use of this month (UTC) has\ncome to. Commitments, a minimum and taxes are in the invoice alone: basalt invoice preview.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		c, err := k.app.api.InstanceCost(cmd.Context(), in.Meta.ID)
		if err != nil {
			return err
		}
		return k.app.print(c, func() table {
			return table{{"RESERVED/HOUR", "FULL-USE/HOUR", "SPENT", "SINCE"},
				{money(c.ReservedMicros, c.Currency), money(c.FullUseMicros, c.Currency), money(c.SpentMicros, c.Currency), c.From.UTC().Format(time.DateOnly)}}
		})
	}
	return cmd
}
