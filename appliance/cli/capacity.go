package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) capacityCommand() *cobra.Command {
	return &cobra.Command{
		Use: "capacity", Short: "Show how much of the GPUs is allocated, and when they are expected to be full", Args: cobra.NoArgs,
		Long: "The forecast is a straight line through the highest use of each of the last 28 days: reserved GPU time and used VRAM.\n" +
			"There is none without a week of records or without significant growth. For operators.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.api.Capacity(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(c, func() table {
				t := table{{"POOL", "MODEL", "GPUS", "VRAM", "ALLOCATED", "FULL"}}
				for _, g := range c.Gpus {
					t = append(t, []string{g.Pool, g.Model, strconv.FormatInt(g.Count, 10), formatSize(g.VramBytes), fmt.Sprintf("%.0f%%", g.AllocatedPercent), fullIn(g)})
				}
				return t
			})
		},
	}
}

// fullIn describes a forecast.
func fullIn(g api.GPUCapacity) string {
	switch g.Trend {
	case api.CapacityGrowing:
		return fmt.Sprintf("in about %d days (%d to %d)", g.FullInDays, g.EarliestDays, g.LatestDays)
	case api.CapacityFull:
		return "now"
	case api.CapacitySteady:
		return "no growth"
	}
	return fmt.Sprintf("unknown: %d of 7 days recorded", g.History)
}
