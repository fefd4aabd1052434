package cli

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// billingFlags declares the flags for how an organization pays.
func billingFlags(f *pflag.FlagSet) func(*api.OrganizationBilling) (*api.OrganizationBilling, error) {
	mode := f.String("billing", "", "invoice, prepaid, or none (not billed)")
	zone := f.String("time-zone", "", "billing time zone, e.g. Europe/Berlin; default: UTC")
	due := f.Int64("due-days", 0, "payment term in days; default: 14")
	since := f.String("billing-since", "", "first month to invoice, e.g. 2026-03-01; default: this month")
	warn := f.String("warn-below", "", "prepaid: warn when the balance falls below this")
	credit := f.String("credit", "", "prepaid: credit limit")
	stop := f.Int64("stop-after-days", 0, "invoice: days after the due date until nothing new can be created or started; default: 7")
	suspend := f.Int64("suspend-after-days", 0, "days until instances are stopped; default: 14, prepaid 1")
	remove := f.Int64("delete-after-days", 0, "days after that until its resources are permanently deleted, a week after a warning; 0 (default): never")
	grace := f.String("grace-until", "", "grace period: only warn until this day, e.g. 2026-03-01")
	address := f.StringArray("address", nil, "line of the billing address, repeatable")
	country := f.String("country", "", "country of the customer, ISO 3166-1 alpha-2, which decides the tax of invoices; default: that of the seller")
	region := f.String("region", "", "region of the country, if the seller has a rate for it")
	taxID := f.String("tax-id", "", "VAT number on invoices")
	return func(old *api.OrganizationBilling) (*api.OrganizationBilling, error) {
		given := *zone != "" || *since != "" || *warn+*credit+*grace != "" || slices.ContainsFunc([]string{"due-days", "stop-after-days", "suspend-after-days", "delete-after-days"}, f.Changed) || len(*address) > 0 || *taxID+*country+*region != ""
		switch {
		case *mode == "none":
			return nil, nil
		case *mode == "" && !given:
			return old, nil
		case *mode == "" && old == nil:
			return nil, usagef("--billing is required: invoice or prepaid")
		}
		b := api.OrganizationBilling{}
		if old != nil {
			b = *old
		}
		b.Mode, b.TimeZone, b.TaxID = cmp.Or(api.BillingMode(*mode), b.Mode), cmp.Or(*zone, b.TimeZone), cmp.Or(*taxID, b.TaxID)
		b.Country, b.Region = cmp.Or(strings.ToUpper(*country), b.Country), cmp.Or(*region, b.Region)
		if len(*address) > 0 {
			b.Address = *address
		}
		for flag, days := range map[string]struct{ given, to **int64 }{"due-days": {&due, &b.DueDays}, "stop-after-days": {&stop, &b.StopAfterDays}, "suspend-after-days": {&suspend, &b.SuspendAfterDays}} {
			if f.Changed(flag) { // also to 0
				*days.to = *days.given
			}
		}
		if f.Changed("delete-after-days") { // also to 0
			b.DeleteAfterDays = *remove
		}
		var err error
		if *credit != "" {
			if b.CreditMicros, err = parseMicros(*credit); err != nil {
				return nil, err
			}
		}
		if *warn != "" {
			left, err := parseMicros(*warn)
			if err != nil {
				return nil, err
			}
			b.WarnMicros = &left
		}
		if b.GraceUntil, err = moment(*grace, b.GraceUntil); err != nil {
			return nil, err
		}
		b.Since, err = moment(*since, b.Since)
		return &b, err
	}
}

func (a *App) creditNotes() *kind[api.CreditNote] {
	return &kind[api.CreditNote]{
		app: a, noun: "credit-note", about: "Credit notes on invoices",

		refs:    []api.Kind{api.KindOrganization, api.KindInvoice},
		columns: []string{"ORGANIZATION", "INVOICE", "TOTAL", "REASON"},
		row: func(n api.CreditNote) []string {
			return []string{a.named(n.Meta.Organization), a.named(string(n.Spec.Invoice)), formatMicros(n.Spec.TotalMicros) + " " + n.Spec.Currency, n.Spec.Reason}
		},
		detail: func(n api.CreditNote) (d detail) {
			for _, l := range n.Spec.Lines {
				d.add(l.Line, formatMicros(l.AmountMicros))
			}
			return d
		},
		more: []*cobra.Command{a.pdfCommand(func(ctx context.Context, ref, organization string, w io.Writer) error {
			return a.api.CreditNotePDF(ctx, ref, organization, w)
		})},
	}
}

func (a *App) payments() *kind[api.Payment] {
	return &kind[api.Payment]{
		app: a, noun: "payment", about: "Payments and refunds", plainRow: true,

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "TYPE", "AMOUNT", "REFERENCE", "RECEIVED"},
		row: func(p api.Payment) []string {
			return []string{a.named(p.Meta.Organization), string(p.Spec.Type), formatMicros(p.Spec.AmountMicros) + " " + p.Spec.Currency, p.Spec.Reference, formatTime(p.Spec.ReceivedAt)}
		},
		more: []*cobra.Command{a.paymentAddCommand()},
	}
}

func (a *App) paymentAddCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "add AMOUNT CURRENCY", Short: "Record a payment", Args: cobra.ExactArgs(2),
		Long:    "A payment recorded twice with the same reference counts once. Payments of a prepaid organization top up its wallet.",
		Example: "basalt payment add 250 EUR --organization acme --reference bank-2026-0042"}
	reference := cmd.Flags().String("reference", "", "reference, e.g. of the bank transaction")
	refund := cmd.Flags().Bool("refund", false, "record a refund")
	received := cmd.Flags().String("received", "", "date received, e.g. 2026-03-01; default: now")
	note := cmd.Flags().String("note", "", "free text")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p := api.Payment{Meta: api.Meta{Organization: a.config.Organization}, Spec: api.PaymentSpec{Currency: strings.ToUpper(args[1]), Reference: *reference, Note: *note}}
		if *refund {
			p.Spec.Type = api.PaymentOut
		}
		var err error
		if p.Spec.AmountMicros, err = parseMicros(args[0]); err != nil {
			return err
		}
		if p.Spec.ReceivedAt, err = moment(*received, p.Spec.ReceivedAt); err != nil {
			return err
		}
		if p, err = client.Of[api.Payment](a.api).Create(cmd.Context(), p); err != nil {
			return err
		}
		return a.payments().printOne(cmd.Context(), p)
	}
	return cmd
}

func (a *App) invoiceCreditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "credit INVOICE", Short: "Credit an invoice, or part of it", Args: cobra.ExactArgs(1),
		Long:    "Without --line, credits the remaining amount of the invoice. Taxes are credited with their line items.",
		Example: "basalt invoice credit inv-000042 --line line-0123456789ab=1.50 --reason 'outage on Monday'"}
	lines := cmd.Flags().StringArray("line", nil, "LINE=AMOUNT, repeatable")
	reason := cmd.Flags().String("reason", "", "free text")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n := api.CreditNote{Meta: api.Meta{Organization: a.config.Organization}, Spec: api.CreditNoteSpec{Invoice: api.InvoiceID(args[0]), Reason: *reason}}
		for _, l := range *lines {
			id, amount, ok := strings.Cut(l, "=")
			if !ok {
				return usagef("--line %q is not valid, want LINE=AMOUNT", l)
			}
			micros, err := parseMicros(amount)
			if err != nil {
				return err
			}
			n.Spec.Lines = append(n.Spec.Lines, api.CreditLine{Line: id, AmountMicros: micros})
		}
		n, err := client.Of[api.CreditNote](a.api).Create(cmd.Context(), n)
		if err != nil {
			return err
		}
		return a.creditNotes().printOne(cmd.Context(), n)
	}
	return cmd
}

func (a *App) ledgerCommand() *cobra.Command {
	return &cobra.Command{Use: "ledger", Short: "Show an organization's ledger, calculated from invoices, credit notes and payments", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.api.Ledger(cmd.Context(), a.config.Organization)
			if err != nil {
				return err
			}
			return a.print(l, func() table {
				t := table{{"ACCOUNT", "CURRENCY", "BALANCE"}}
				for _, b := range l.Accounts {
					t = append(t, []string{b.Account, b.Currency, formatMicros(b.BalanceMicros)})
				}
				return t
			})
		}}
}

// parseMicros parses an amount of money, for example 12, 12.5 or 0.000001, and returns micros.
func parseMicros(s string) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	bad := usagef("%q is not a valid amount, want e.g. 12, 12.50 or 0.000001", s)
	if whole == "" || len(whole) > 12 || len(fraction) > 6 || strings.HasSuffix(s, ".") {
		return 0, bad
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 63)
	if err != nil {
		return 0, bad
	}
	return int64(n), nil
}

func (a *App) walletCommand() *cobra.Command {
	return &cobra.Command{Use: "wallet", Short: "Show an organization's balance and billing state", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.api.Wallet(cmd.Context(), a.config.Organization)
			if err != nil {
				return err
			}
			return a.print(w, func() table {
				t := table{{"", w.Currency, "NOTE"}, {"balance", formatMicros(w.BalanceMicros), "negative: amount owed"},
					{"not invoiced yet", formatMicros(w.UnbilledMicros), " "}, {"state", string(w.State), w.Message}}
				for _, o := range w.Open {
					t = append(t, []string{o.Number, formatMicros(o.LeftMicros), "due " + formatTime(o.DueAt)})
				}
				return t
			})
		}}
}

func (a *App) budgets() *kind[api.Budget] {
	return &kind[api.Budget]{
		app: a, noun: "budget", about: "Monthly budgets",

		refs:    []api.Kind{api.KindOrganization, api.KindProject},
		columns: []string{"ORGANIZATION", "OF", "AMOUNT", "CAP", "SPENT", "NOTE"},
		row: func(b api.Budget) []string {
			note := ""
			for _, x := range b.Status.Alerts {
				note = strconv.FormatInt(x.Percent, 10) + " % since " + formatTime(x.At)
			}
			if b.Status.CappedAt != nil {
				note = "used since " + formatTime(*b.Status.CappedAt)
			}
			return []string{a.named(b.Meta.Organization), cmp.Or(a.named(string(b.Spec.Project)), "all"), formatMicros(b.Spec.AmountMicros), string(b.Spec.Cap), formatMicros(b.Status.SpentMicros), note}
		},
		flags: func(f *pflag.FlagSet) func(*api.Budget) error {
			amount := f.String("amount", "", "monthly amount, in the currency of the organization's price book")
			of := f.String("of", "", "project, name or ID; default: the whole organization")
			limit := f.String("cap", "", "when used up: none, stop (nothing new can be created or started) or suspend (running instances are stopped as well)")
			alerts := f.Int64Slice("alert", nil, "threshold for an alert, in %; repeatable")
			return func(b *api.Budget) (err error) {
				if *amount != "" {
					if b.Spec.AmountMicros, err = parseMicros(*amount); err != nil {
						return err
					}
				}
				b.Spec.Project, b.Spec.Cap = cmp.Or(api.ProjectID(*of), b.Spec.Project), cmp.Or(api.BudgetCap(*limit), b.Spec.Cap)
				if len(*alerts) > 0 {
					b.Spec.AlertPercents = *alerts
				}
				return nil
			}
		},
	}
}

// pdfCommand downloads a document to a file.
func (a *App) pdfCommand(write func(ctx context.Context, ref, organization string, w io.Writer) error) *cobra.Command {
	return &cobra.Command{Use: "pdf NUMBER FILE", Short: "Download the PDF", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var raw bytes.Buffer // so that an error creates no file
			if err := write(cmd.Context(), args[0], a.config.Organization, &raw); err != nil {
				return err
			}
			return os.WriteFile(args[1], raw.Bytes(), 0o600)
		}}
}
