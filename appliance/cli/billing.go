package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) usageRecords() *kind[api.UsageRecord] {
	var of api.RecordQuery
	return &kind[api.UsageRecord]{
		app: a, noun: "usage-record", about: "Usage records",
		narrow: func(q *client.Query) { q.Records = of },
		filter: func(cmd *cobra.Command) {
			cmd.Long = "Sorted by their ends. Old records are removed: `basalt usage` has the sums of all."
			f := cmd.Flags()
			f.StringVar((*string)(&of.Meter), "meter", "", "filter by meter, e.g. gpu-nanoseconds")
			f.StringVar(&of.Resource, "resource", "", "filter by resource ID")
			from := f.String("from", "", "filter by end, after this time, e.g. 2026-03-01 or 2026-03-01T12:00:00Z")
			to := f.String("to", "", "filter by end, up to and including this time")
			cmd.PreRunE = func(*cobra.Command, []string) (err error) {
				if of.From, err = moment(*from, time.Time{}); err != nil {
					return err
				}
				of.To, err = moment(*to, time.Time{})
				return err
			}
		},
		plainRow: true, refs: []api.Kind{api.KindInstance, api.KindVolume}, columns: []string{"METER", "QUANTITY", "RESOURCE", "FROM (UTC)", "TO"},
		row: func(u api.UsageRecord) []string {
			s := u.Spec
			from, to := formatSpan(s.Start, s.End)
			return []string{string(s.Meter), formatQuantity(s.Meter, api.Units(s.Quantity)), a.namedResource(s.ResourceName, s.Resource), from, to}
		},
	}
}

func (a *App) priceBooks() *kind[api.PriceBook] {
	return &kind[api.PriceBook]{
		app: a, noun: "price-book", aliases: []string{"pricebook"}, about: "Price books: prices per meter", more: []*cobra.Command{a.simulateCommand(), a.quoteCommand(), a.versionsCommand()},
		columns: []string{"CURRENCY", "PRICES"},
		detail: func(o api.PriceBook) (d detail) {
			for _, p := range o.Spec.Prices {
				d.add(string(p.Meter), priceText(p, o.Spec.Currency))
			}
			for _, c := range o.Spec.Commitments {
				d.add("commitment", fmt.Sprintf("%d × %d %s at %s %s each", c.Quantity, c.Per, c.Meter, formatMicros(c.PriceMicros), o.Spec.Currency))
			}
			for _, x := range o.Spec.Discounts {
				d.add("discount", formatPerCent(x.BasisPoints)+" off "+cmp.Or(joinMeters(x.Meters), "all"))
			}
			if o.Spec.MinimumMicros > 0 {
				d.add("minimum", formatMicros(o.Spec.MinimumMicros)+" "+o.Spec.Currency)
			}
			return d
		},
		row: func(o api.PriceBook) []string {
			var prices []string
			for _, p := range o.Spec.Prices {
				prices = append(prices, fmt.Sprintf("%s per %s", formatMicros(p.PriceMicros), cmp.Or(p.Unit, fmt.Sprintf("%d %s", p.Per, p.Meter))))
			}
			return []string{o.Spec.Currency, strings.Join(prices, ", ")}
		},
		flags: func(f *pflag.FlagSet) func(*api.PriceBook) error {
			currency := f.String("currency", "", "ISO 4217 code, e.g. EUR")
			prices := f.StringArray("price", nil, `a price as JSON, repeatable: {"meter":"gpu-nanoseconds","priceMicros":800000,"per":3600000000000,"unit":"GPU hour"}`)
			seller := f.String("seller", "", "seller name on invoices")
			address := f.StringArray("seller-address", nil, "line of the seller's address, repeatable")
			taxID := f.String("seller-tax-id", "", "seller's tax ID")
			return func(o *api.PriceBook) error {
				o.Spec.Seller.Name, o.Spec.Seller.TaxID = cmp.Or(*seller, o.Spec.Seller.Name), cmp.Or(*taxID, o.Spec.Seller.TaxID)
				if len(*address) > 0 {
					o.Spec.Seller.Address = *address
				}
				o.Spec.Currency = cmp.Or(*currency, o.Spec.Currency)
				if len(*prices) > 0 {
					o.Spec.Prices = nil
				}
				for _, raw := range *prices {
					var p api.Price
					if err := json.Unmarshal([]byte(raw), &p); err != nil {
						return usagef("--price %s: %w", raw, err)
					}
					o.Spec.Prices = append(o.Spec.Prices, p)
				}
				if o.Spec.Prices == nil {
					o.Spec.Prices = []api.Price{}
				}
				return nil
			}
		},
	}
}

func priceText(p api.Price, currency string) string {
	unit := cmp.Or(p.Unit, fmt.Sprint(p.Per))
	text := ""
	for _, t := range p.Tiers {
		text += fmt.Sprintf("%s up to %d, then ", formatMicros(t.PriceMicros), t.UpTo)
	}
	text += fmt.Sprintf("%s %s per %s", formatMicros(p.PriceMicros), currency, unit)
	if !p.From.IsZero() {
		text += " from " + formatTime(p.From)
	}
	return text
}

func joinMeters(all []api.Meter) string {
	words := make([]string, len(all))
	for i, m := range all {
		words[i] = string(m)
	}
	return strings.Join(words, ", ")
}

func (a *App) versionsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "versions NAME|ID", Short: "Show the versions of a price book, newest first", Args: cobra.ExactArgs(1),
		Long: "Each version applied until the next began. Usage costs what the version of its hour says. -o json has all prices."}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all := []api.PriceBookSpec{}
		for v, err := range a.api.PriceBookVersions(cmd.Context(), args[0], 0) {
			if err != nil {
				return err
			}
			all = append(all, v)
		}
		return a.print(all, func() table {
			t := table{{"VERSION", "FROM (UTC)", "CURRENCY", "PRICES", "COMMITMENTS", "DISCOUNTS"}}
			for _, v := range all {
				from := "-"
				if !v.EffectiveFrom.IsZero() {
					from = v.EffectiveFrom.UTC().Format("2006-01-02 15:04")
				}
				t = append(t, []string{strconv.FormatInt(v.Version, 10), from, v.Currency, strconv.Itoa(len(v.Prices)), strconv.Itoa(len(v.Commitments)), strconv.Itoa(len(v.Discounts))})
			}
			return t
		})
	}
	return cmd
}

func (a *App) simulateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "simulate NAME|ID", Short: "Simulate the cost of past usage with a price book", Args: cobra.ExactArgs(1),
		Long: "Calculates the usage of the period for every organization, or for the one given by --organization, and compares it with the organization's current price book. Nothing is charged."}
	period := a.periodFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, err := period()
		if err != nil {
			return err
		}
		s, err := a.api.SimulatePriceBook(cmd.Context(), args[0], a.config.Organization, from, to)
		if err != nil {
			return err
		}
		return a.print(s, func() table {
			t := table{{"ORGANIZATION", "WOULD PAY " + s.Currency, "PAYS", "NOTE"}}
			for _, i := range s.Items {
				t = append(t, []string{i.Name, formatMicros(i.TotalMicros), formatMicros(i.OwnMicros) + " " + i.OwnCurrency, i.Note})
			}
			return append(t, []string{"total", formatMicros(s.TotalMicros), " ", " "})
		})
	}
	return cmd
}
