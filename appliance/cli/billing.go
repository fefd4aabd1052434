package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) usageRecords() *kind[api.UsageRecord] {
	return &kind[api.UsageRecord]{
		app: a, kind: api.KindUsageRecord, noun: "usage-record", about: "What was used", scope: ofProject, readOnly: true,
		all: (*client.API).UsageRecords, meta: func(u *api.UsageRecord) *api.Meta { return &u.Meta },
		plainRow: true, refs: []api.Kind{api.KindInstance, api.KindVolume}, columns: []string{"METER", "QUANTITY", "RESOURCE", "FROM (UTC)", "TO"},
		row: func(u api.UsageRecord) []string {
			s := u.Spec
			from, to := formatSpan(s.Start, s.End)
			return []string{string(s.Meter), formatQuantity(s.Meter, s.Quantity), a.namedResource(s.ResourceName, s.Resource), from, to}
		},
	}
}

func (a *App) accounts() *kind[api.Account] {
	return &kind[api.Account]{
		app: a, kind: api.KindAccount, noun: "account", about: "Accounts of the ledger", scope: ofOrganization,
		all: (*client.API).Accounts, meta: func(o *api.Account) *api.Meta { return &o.Meta },
		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"CURRENCY", "TYPE", "ORGANIZATION"},
		row: func(o api.Account) []string {
			return []string{o.Spec.Currency, o.Spec.Type, a.named(o.Meta.Organization)}
		},
		flags: func(f *pflag.FlagSet) func(*api.Account) error {
			currency := f.String("currency", "", "ISO 4217, as EUR")
			typ := f.String("type", "", "receivable (default) or revenue")
			return func(o *api.Account) error {
				o.Spec.Currency, o.Spec.Type = cmp.Or(*currency, o.Spec.Currency), cmp.Or(*typ, o.Spec.Type)
				return nil
			}
		},
	}
}

func (a *App) priceBooks() *kind[api.PriceBook] {
	return &kind[api.PriceBook]{
		app: a, kind: api.KindPriceBook, noun: "price-book", about: "Prices of meters",
		all: (*client.API).PriceBooks, meta: func(o *api.PriceBook) *api.Meta { return &o.Meta },
		columns: []string{"CURRENCY", "PRICES"},
		detail: func(o api.PriceBook) (d detail) {
			for _, p := range o.Spec.Prices {
				d.add(string(p.Meter), fmt.Sprintf("%s %s per %s", formatMicros(p.PriceMicros), o.Spec.Currency, cmp.Or(p.Unit, fmt.Sprint(p.Per))))
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
			currency := f.String("currency", "", "ISO 4217, as EUR")
			prices := f.StringArray("price", nil, `one price as JSON, any number of times: {"meter":"gpu-nanoseconds","priceMicros":800000,"per":3600000000000,"unit":"GPU hour"}`)
			return func(o *api.PriceBook) error {
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

func (a *App) invoiceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "invoice", Short: "What usage costs"}
	preview := &cobra.Command{Use: "preview", Short: "Show the invoice as it would be", Args: cobra.NoArgs}
	from := preview.Flags().String("from", "", "first moment, as 2026-03-01 or 2026-03-01T12:00:00Z; the month's first unless given")
	to := preview.Flags().String("to", "", "end, not included; now unless given")
	preview.RunE = func(cmd *cobra.Command, _ []string) error {
		now := a.Now().UTC()
		begin, err := moment(*from, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		end, err := moment(*to, now)
		if err != nil {
			return err
		}
		p, err := a.api.InvoicePreview(cmd.Context(), a.config.Organization, begin, end)
		if err != nil {
			return err
		}
		if a.flags.output == "table" {
			fmt.Fprintf(a.Out, "From %s to %s\n\n", formatTime(p.From), formatTime(p.To))
		}
		return a.print(p, func() table { return a.invoiceTable(cmd.Context(), p) })
	}
	cmd.AddCommand(preview)
	return cmd
}

func moment(s string, otherwise time.Time) (time.Time, error) {
	if s == "" {
		return otherwise, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return otherwise, usagef("%q is no time: write 2026-03-01 or 2026-03-01T12:00:00Z", s)
}

func (a *App) invoiceTable(ctx context.Context, p api.InvoicePreview) table {
	a.learn(ctx, []api.Kind{api.KindInstance})
	t := table{{"METER", "RESOURCE", "QUANTITY", "PRICE", "AMOUNT " + p.Currency}}
	for _, l := range p.Lines {
		t = append(t, []string{string(l.Meter), a.namedResource(l.ResourceName, l.Resource), formatQuantity(l.Meter, l.Quantity),
			formatMicros(l.PriceMicros) + " per " + cmp.Or(l.Unit, fmt.Sprint(l.Per)), formatMicros(l.AmountMicros)})
	}
	return append(t, []string{"total", " ", " ", " ", formatMicros(p.TotalMicros)})
}
