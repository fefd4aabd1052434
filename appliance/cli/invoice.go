package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) invoices() *kind[api.Invoice] {
	return &kind[api.Invoice]{
		app: a, noun: "invoice", about: "Invoices",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "FROM (UTC)", "TO", "TOTAL", "DUE"},
		row: func(i api.Invoice) []string {
			from, to := formatSpan(i.Spec.From, i.Spec.To)
			return []string{a.named(i.Meta.Organization), from, to, formatMicros(i.Spec.TotalMicros) + " " + i.Spec.Currency, formatTime(i.Spec.DueAt)}
		},
		detail: func(i api.Invoice) (d detail) {
			if seller := partyText(i.Spec.Prices.Seller); seller != "" {
				d.add("seller", seller)
			}
			d.add("customer", partyText(i.Spec.Customer))
			if text := taxText(i.Spec.Tax); text != "" {
				d.add("tax", text)
			}
			for _, l := range i.Spec.Lines {
				d.add(l.ID, strings.Join(a.invoiceRow(l)[:5], "  "))
			}
			return d
		},
		more: []*cobra.Command{a.invoicePreviewCommand(), a.invoiceExplainCommand(), a.invoiceCreditCommand(), a.invoiceFinalCommand(),
			a.pdfCommand(func(ctx context.Context, ref, organization string, w io.Writer) error {
				return a.api.InvoicePDF(ctx, ref, organization, w)
			})},
	}
}

func (a *App) invoicePreviewCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "preview", Short: "Preview the invoice for a period", Args: cobra.NoArgs}
	period := a.periodFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, to, err := period()
		if err != nil {
			return err
		}
		p, err := a.api.InvoicePreview(cmd.Context(), a.config.Organization, from, to)
		if err != nil {
			return err
		}
		if a.flags.output == "table" {
			fmt.Fprintf(a.Out, "From %s to %s\n", formatTime(p.From), formatTime(p.To))
			if p.Tax != nil && p.Tax.Reason != api.TaxNone {
				fmt.Fprintf(a.Out, "Tax: %s\n", taxText(p.Tax))
			}
			fmt.Fprintln(a.Out)
		}
		return a.print(p, func() table { return a.invoiceTable(cmd.Context(), p) })
	}
	return cmd
}

func (a *App) invoiceFinalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "final", Short: "Issue the final invoice of an organization now, instead of after the end of the month", Args: cobra.NoArgs,
		Long: "The invoice is for what was used since the last one until the end of the current hour, with the part of commitments and of\n" +
			"the minimum until then. Earlier months that have no invoice yet are invoiced, too. What is used or recorded later is on the\n" +
			"next invoice. If nothing was used since the last invoice, none is issued, and that one is shown.",
		Example: "  basalt invoice final --organization acme --dry-run"}
	dry := dryRunFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f, err := a.api.IssueFinalInvoices(cmd.Context(), a.config.Organization, *dry)
		if err != nil {
			return err
		}
		if err := a.print(f, func() table { return finalTable(f) }); err != nil || !*dry {
			return err
		}
		fmt.Fprintln(a.Err, "dry run: the invoices would be issued; nothing was changed")
		return nil
	}
	return cmd
}

func finalTable(f api.FinalInvoices) table {
	t := table{{"INVOICE", "FROM (UTC)", "TO", "AMOUNT " + f.Currency}}
	for _, i := range f.Invoices {
		from, to := formatSpan(i.Spec.From, i.Spec.To)
		t = append(t, []string{i.Spec.Number, from, to, formatMicros(i.Spec.TotalMicros)})
	}
	return append(t, []string{"total", " ", " ", formatMicros(f.TotalMicros)})
}

func (a *App) invoiceExplainCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "explain [INVOICE] LINE", Short: "Show the hourly breakdown of an invoice line item", Args: cobra.RangeArgs(1, 2),
		Long: "LINE is the ID of a line item as shown by `basalt invoice show INVOICE` or, without INVOICE, by `basalt invoice preview` for the same period. With --hour, shows the usage records of that hour."}
	period := a.periodFlags(cmd)
	hour := cmd.Flags().String("hour", "", "only this hour, with its records, e.g. 2026-03-01T12:00:00Z")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, to, err := period()
		if err != nil {
			return err
		}
		q := api.InvoiceQuestion{Organization: api.OrganizationID(a.config.Organization), From: from, To: to, Line: args[0]}
		if q.Hour, err = moment(*hour, time.Time{}); err != nil {
			return err
		}
		var e api.InvoiceExplanation
		if len(args) == 2 {
			e, err = a.api.ExplainInvoiceLine(cmd.Context(), args[0], a.config.Organization, args[1], q.Hour)
		} else {
			e, err = a.api.ExplainInvoice(cmd.Context(), q)
		}
		if err != nil {
			return err
		}
		return a.print(e, func() table { return explanationTable(e) })
	}
	return cmd
}

func explanationTable(e api.InvoiceExplanation) table {
	t := table{{"FROM (UTC)", "QUANTITY", "RECORD"}}
	for _, h := range e.Hours {
		t = append(t, []string{formatTime(h.Hour), formatQuantity(e.Line.Meter, h.Quantity), " "})
	}
	for _, r := range e.Records {
		t = append(t, []string{formatTime(r.Spec.Start), formatQuantity(r.Spec.Meter, api.Units(r.Spec.Quantity)), r.Meta.ID})
	}
	for _, l := range e.Late {
		t = append(t, []string{"recorded later", formatQuantity(l.Meter, l.Quantity), "charged by a later invoice as " + l.ID})
	}
	return t
}

// periodFlags declares --from and --to, which default to the first of this month and now.
func (a *App) periodFlags(cmd *cobra.Command) func() (from, to time.Time, err error) {
	first := cmd.Flags().String("from", "", "start, e.g. 2026-03-01 or 2026-03-01T12:00:00Z; default: the first of the month")
	end := cmd.Flags().String("to", "", "end (exclusive); default: now")
	return func() (from, to time.Time, err error) {
		now := a.Now().UTC()
		if from, err = moment(*first, time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)); err != nil {
			return from, to, err
		}
		to, err = moment(*end, now)
		return from, to, err
	}
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
	return otherwise, usagef("%q is not a valid time, want e.g. 2026-03-01 or 2026-03-01T12:00:00Z", s)
}

func (a *App) invoiceTable(ctx context.Context, p api.InvoicePreview) table {
	a.learn(ctx, []api.Kind{api.KindInstance})
	t := table{{"METER", "RESOURCE", "QUANTITY", "PRICE", "AMOUNT " + p.Currency, "LINE"}}
	for _, l := range p.Lines {
		t = append(t, a.invoiceRow(l))
	}
	return append(t, []string{"total", " ", " ", " ", formatMicros(p.TotalMicros), " "})
}

func (a *App) invoiceRow(l api.InvoiceLine) []string {
	row := []string{string(l.Meter), " ", " ", " ", formatMicros(l.AmountMicros), l.ID}
	if l.Per > 0 {
		row[2] = formatQuantity(l.Meter, l.Quantity)
		row[3] = formatMicros(l.PriceMicros) + " per " + cmp.Or(l.Unit, fmt.Sprint(l.Per))
	}
	switch l.Kind {
	case api.LineCommitment:
		row[1] = "commitment"
	case api.LineMinimum:
		row[0] = "minimum"
	case api.LineTax:
		row[0], row[3] = l.Name, formatPerCent(l.BasisPoints)
	case api.LineLate:
		row[0] = "late " + cmp.Or(row[0], l.Name, "minimum")
		row[1] = a.namedResource(l.ResourceName, l.Resource)
	default:
		row[1] = a.namedResource(l.ResourceName, l.Resource)
	}
	if l.Committed {
		row[3] = "committed"
	}
	if l.DiscountMicros > 0 {
		row[3] += ", " + formatPerCent(l.BasisPoints) + " off"
	}
	return row
}

// formatPerCent formats hundredths of a percent.
func formatPerCent(basisPoints int64) string {
	return strconv.FormatFloat(float64(basisPoints)/100, 'f', -1, 64) + " %"
}
