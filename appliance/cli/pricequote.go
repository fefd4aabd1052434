package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) quoteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "quote NAME|ID", Short: "Show what a machine costs in a month by a price book", Args: cobra.ExactArgs(1),
		Long: "Rates a month of 30 days of one machine as an invoice would, without commitments, the minimum and taxes. The machine\n" +
			"runs for --hours; its root volume exists all the time. With --changed, the costs by another price book are shown as well.",
		Example: "  basalt price-book quote default --flavor small --hours 200\n  basalt price-book quote default --flavor gpu --vram 24GiB --gpu-share 50 --changed draft"}
	f := cmd.Flags()
	q := api.PriceQuoteRequest{}
	f.StringVar(&q.Flavor, "flavor", "", "flavor, name or ID")
	f.Var(sizeFlag{&q.RootBytes}, "root-size", "size of the root volume; default: the flavor's")
	f.StringVar(&q.StorageClass, "storage-pool", "", "storage pool of the root volume")
	f.StringVar(&q.Model, "gpu-model", "", "model of the GPU")
	f.StringVar(&q.Pool, "gpu-pool", "", "GPU pool (default \"default\")")
	f.StringVar((*string)(&q.Tier), "gpu-tier", "", "premium, standard or basic (default standard)")
	f.Var(sizeFlag{&q.VramBytes}, "vram", "VRAM of the virtual GPU, e.g. 6GiB")
	f.Int64Var(&q.SharePercent, "gpu-share", 0, "guaranteed GPU time, in %")
	f.Int64Var(&q.Hours, "hours", 720, "hours of the month in which the machine runs, up to 720")
	f.Int64Var(&q.GpuPercent, "gpu-use", 100, "how much of the GPU's time it uses while it runs, in %")
	changed := f.String("changed", "", "price book to compare with, name or ID")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *changed != "" {
			other, err := client.Of[api.PriceBook](a.api).Get(cmd.Context(), *changed, client.Query{})
			if err != nil {
				return err
			}
			q.Prices = &other.Spec
		}
		quote, err := a.api.QuotePriceBook(cmd.Context(), args[0], q)
		if err != nil {
			return err
		}
		return a.print(quote, func() table { return quoteTable(quote) })
	}
	return cmd
}

// quoteTable lists the meters of both months.
func quoteTable(q api.PriceQuote) table {
	changed := cmp.Or(q.Changed, &api.QuotedMonth{})
	before, after := microsOf(q.Current), microsOf(*changed)
	head := []string{"METER", "MONTH " + q.Currency}
	if q.Changed != nil {
		head = append(head, "CHANGED", "DIFFERENCE")
	}
	t := table{head}
	row := func(name string, was, is int64) {
		r := []string{name, formatMicros(was)}
		if q.Changed != nil {
			r = append(r, formatMicros(is), formatMicros(is-was))
		}
		t = append(t, r)
	}
	for _, m := range api.Meters() {
		_, was := before[m]
		_, is := after[m]
		if was || is {
			row(string(m), before[m], after[m])
		}
	}
	row("total", q.Current.TotalMicros, changed.TotalMicros)
	row("total, GPU idle", q.Current.Month.ReservedMicros, changed.Month.ReservedMicros)
	row("total, GPU in full use", q.Current.Month.FullUseMicros, changed.Month.FullUseMicros)
	row("hour, GPU idle", q.Current.Hour.ReservedMicros, changed.Hour.ReservedMicros)
	row("hour, GPU in full use", q.Current.Hour.FullUseMicros, changed.Hour.FullUseMicros)
	return t
}

func microsOf(m api.QuotedMonth) map[api.Meter]int64 {
	out := map[api.Meter]int64{}
	for _, x := range m.Meters {
		out[x.Meter] = x.AmountMicros
	}
	return out
}
