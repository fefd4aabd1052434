package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) taxSettingsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tax-settings", Short: "Taxes on invoices, by the customer's country"}
	cmd.AddCommand(&cobra.Command{Use: "show", Short: "Show the taxes on invoices of the operator, or of a reseller", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.api.TaxSettings(cmd.Context(), a.config.Organization)
			if err != nil {
				return err
			}
			return a.printTaxes(s)
		},
	}, a.taxSettingsSet())
	return cmd
}

func (a *App) taxSettingsSet() *cobra.Command {
	cmd := &cobra.Command{Use: "set", Short: "Change the taxes on invoices; other settings are kept", Args: cobra.NoArgs,
		Long: "They apply to invoices that are issued from then on. A rate is COUNTRY NAME RATE in %, and the day from which it holds if it\n" +
			"does not always; the name may have several words, and the country a region after a slash. With --organization, the settings\n" +
			"of a reseller, which is the seller to its customers.",
		Example: "  basalt tax-settings set --country DE --tax-id DE136695976 --rate 'DE VAT 19' --rate 'FR VAT 20' --reverse-charge\n" +
			"  basalt tax-settings set --rate 'DE VAT 19' --rate 'DE VAT 20 2028-01-01' --rate 'ES/ES-CN IGIC 7'\n" +
			"  basalt tax-settings set --other 'Sales tax 5'"}
	f := cmd.Flags()
	country := f.String("country", "", "country of the seller, ISO 3166-1 alpha-2")
	taxID := f.String("tax-id", "", "VAT number of the seller on invoices")
	rates := f.StringArray("rate", nil, "rate of a country, repeatable; replaces all rates; empty: none")
	reverse := f.Bool("reverse-charge", false, "no tax for customers in other countries of the EU with a valid VAT number, who account for it")
	verify := f.Bool("verify-numbers", false, "reverse charge only for VAT numbers that VIES, the service of the EU, has confirmed")
	other := f.String("other", "", "NAME RATE: tax of customers in countries without a rate; empty: none")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.api.TaxSettings(cmd.Context(), a.config.Organization)
		if err != nil {
			return err
		}
		was := s
		if f.Changed("country") {
			s.Country = strings.ToUpper(*country)
		}
		if f.Changed("tax-id") {
			s.TaxID = *taxID
		}
		if f.Changed("reverse-charge") {
			s.ReverseCharge = *reverse
		}
		if f.Changed("verify-numbers") {
			s.VerifyNumbers = *verify
		}
		if f.Changed("rate") {
			if s.Rates, err = parseTaxRates(*rates); err != nil {
				return err
			}
		}
		if f.Changed("other") {
			if s.Other, err = parseTax(*other); err != nil {
				return err
			}
		}
		if s, err = a.api.PatchTaxSettings(cmd.Context(), a.config.Organization, client.MergePatch(was, s)); err != nil {
			return err
		}
		return a.printTaxes(s)
	}
	return cmd
}

// parseTaxRates parses the values of --rate.
func parseTaxRates(all []string) (out []api.TaxRate, err error) {
	for _, text := range all {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		r := api.TaxRate{}
		r.Country, r.Region, _ = strings.Cut(strings.ToUpper(words[0]), "/")
		words = words[1:]
		if last := len(words) - 1; last >= 0 && strings.Count(words[last], "-") > 1 { // a date
			if r.From, err = moment(words[last], time.Time{}); err != nil {
				return nil, err
			}
			words = words[:last]
		}
		t, err := parseTax(strings.Join(words, " "))
		if err != nil || t.Name == "" {
			return nil, usagef("--rate %q: want COUNTRY NAME RATE [FROM], e.g. 'DE VAT 19'", text)
		}
		r.Name, r.BasisPoints = t.Name, t.BasisPoints
		out = append(out, r)
	}
	return out, nil
}

// parseTax parses a name and a rate in %.
func parseTax(text string) (api.Tax, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return api.Tax{}, nil
	}
	last := len(words) - 1
	micros, err := parseMicros(strings.TrimSuffix(words[last], "%"))
	if err != nil || last == 0 || micros%10_000 != 0 {
		return api.Tax{}, usagef("%q is not a tax: want NAME RATE, e.g. 'VAT 19' or 'VAT 8.1'", text)
	}
	return api.Tax{Name: strings.Join(words[:last], " "), BasisPoints: micros / 10_000}, nil
}

func (a *App) printTaxes(s api.TaxSettings) error {
	if a.flags.output == "table" {
		fmt.Fprintf(a.Out, "Seller: %s, %s; reverse charge: %s; verification of VAT numbers: %s\n", cmp.Or(s.Country, "no country"), cmp.Or(s.TaxID, "no VAT number"), onOff(s.ReverseCharge), onOff(s.VerifyNumbers))
		if s.Undecided {
			fmt.Fprintln(a.Out, "Price books had different taxes: no invoices are issued until the settings are saved.")
		}
		fmt.Fprintln(a.Out)
	}
	return a.print(s, func() table {
		t := table{{"COUNTRY", "TAX", "RATE", "FROM (UTC)"}}
		for _, r := range s.Rates {
			from := "always"
			if !r.From.IsZero() {
				from = formatTime(r.From)
			}
			t = append(t, []string{strings.TrimSuffix(r.Country+"/"+r.Region, "/"), r.Name, formatPerCent(r.BasisPoints), from})
		}
		if s.Other.Name == "" {
			return append(t, []string{"other", "none", "", "always"})
		}
		return append(t, []string{"other", s.Other.Name, formatPerCent(s.Other.BasisPoints), "always"})
	})
}

// taxText describes why an invoice has its tax.
func taxText(t *api.InvoiceTax) string {
	if t == nil {
		return ""
	}
	text := map[api.TaxReason]string{api.TaxDomestic: "rate of the seller's country", api.TaxCustomerCountry: "rate of the customer's country",
		api.TaxReverseCharge: "to be accounted for by the customer", api.TaxOther: "rate of other countries", api.TaxNone: "none"}[t.Reason]
	if t.Name != "" {
		text = fmt.Sprintf("%s %s, %s", t.Name, formatPerCent(t.BasisPoints), text)
	}
	if t.Note != "" {
		text = t.Note + ": " + text
	}
	if v := t.Verification; v != nil {
		text += fmt.Sprintf("; %s confirmed by VIES at %s", v.Number, formatTime(v.CheckedAt))
		if v.Consultation != "" {
			text += ", consultation number " + v.Consultation
		}
	}
	return text
}

// partyText returns the name, address, country and VAT number of a party on one line.
func partyText(p api.Party) string {
	text := strings.Join(append([]string{p.Name}, p.Address...), ", ")
	for _, more := range []string{p.Country, p.TaxID} {
		if more != "" {
			text += ", " + more
		}
	}
	return strings.TrimPrefix(text, ", ")
}
