package cli

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) offerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "offer", Short: "Available GPU slices and their prices per hour"}
	cmd.AddCommand(a.offerListCommand())
	return cmd
}

func (a *App) offerListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List slices of GPUs, their prices per hour and how many are free", Args: cobra.NoArgs,
		Long: "PRICE/H is the price of an hour in which the GPU is idle, FULL USE/H of one in which it is fully used. Both are as\n" +
			"charged on an invoice, before commitments, minimum and taxes. With --flavor they are for whole instances.",
		Example: "  basalt offer list\n  basalt offer list --flavor small --tier standard"}
	var p api.ListOffersParams
	f := cmd.Flags()
	f.StringVar(&p.Model, "gpu-model", "", "model of the GPU")
	f.StringVar(&p.Pool, "gpu-pool", "", "GPU pool")
	f.StringVar((*string)(&p.Tier), "tier", "", "premium, standard or basic")
	f.StringVar((*string)(&p.Flavor), "flavor", "", "show prices of instances of this flavor, name or ID")
	f.Var(sizeFlag{&p.VramBytes}, "vram", "only this much VRAM, e.g. 6GiB, with --gpu-share")
	f.Int64Var(&p.SharePercent, "gpu-share", 0, "only this guaranteed GPU time, in %, with --vram")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p.Organization, p.Project = a.config.Organization, a.config.Project
		found := []api.Offer{}
		for o, err := range a.api.Offers(cmd.Context(), p) {
			if err != nil {
				return err
			}
			found = append(found, o)
		}
		return a.print(found, func() table { return offerTable(found) })
	}
	return cmd
}

func offerTable(all []api.Offer) table {
	t := table{{"MODEL", "SHARE", "VRAM", "TIER", "PRICE/H", "FULL USE/H", "FREE", "WHERE"}}
	for _, o := range all {
		share, vram, where := "", "", nodes(o.Nodes)
		if o.VramBytes > 0 {
			share, vram, where = fmt.Sprintf("%d%%", o.SharePercent), formatSize(o.VramBytes), o.Pool+", "+where
		}
		t = append(t, []string{cmp.Or(o.Model, "no GPU"), share, vram, string(o.Tier), money(o.ReservedMicros, o.Currency), money(o.FullUseMicros, o.Currency),
			strconv.FormatInt(o.Free, 10), where})
	}
	return t
}

func money(micros int64, currency string) string { return formatMicros(micros) + " " + currency }

func nodes(n int64) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
