package report

import (
	"cmp"
	"encoding/csv"
	"io"
	"iter"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// WriteUse writes use by the hour as CSV.
func WriteUse(w io.Writer, org api.OrganizationID, uses iter.Seq2[api.Use, error]) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"hour", "organization", "project", "resource", "resourceName", "meter", "quantity"}) // Flush tells
	for u, err := range uses {
		if err != nil {
			return err
		}
		if err := out.Write([]string{u.Hour.UTC().Format(time.RFC3339), cell(string(org)), cell(u.Project), cell(u.Resource),
			cell(u.ResourceName), cell(string(u.Meter)), strconv.FormatInt(u.Quantity, 10)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// focus are the columns of FOCUS 1.2 (focus.finops.org) that there is something
// to say in, and those that may not lack.
var focus = []struct {
	name  string
	value func(p api.InvoicePreview, l api.InvoiceLine) string
}{
	{"BilledCost", func(_ api.InvoicePreview, l api.InvoiceLine) string { return money(l.AmountMicros) }},
	{"BillingAccountId", func(p api.InvoicePreview, _ api.InvoiceLine) string { return cell(string(p.Organization)) }},
	{"BillingAccountName", nothing},
	{"BillingAccountType", nothing},
	{"BillingCurrency", func(p api.InvoicePreview, _ api.InvoiceLine) string { return p.Currency }},
	{"BillingPeriodEnd", func(p api.InvoicePreview, _ api.InvoiceLine) string { return stamp(p.To) }},
	{"BillingPeriodStart", func(p api.InvoicePreview, _ api.InvoiceLine) string { return stamp(p.From) }},
	{"ChargeCategory", func(_ api.InvoicePreview, l api.InvoiceLine) string { return category[l.Kind] }},
	{"ChargeClass", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Kind == api.LineLate {
			return "Correction"
		}
		return ""
	}},
	{"ChargeDescription", func(_ api.InvoicePreview, l api.InvoiceLine) string { return cell(describe(l)) }},
	{"ChargeFrequency", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Kind == api.LineUsage {
			return "Usage-Based"
		}
		return "Recurring"
	}},
	{"ChargePeriodEnd", func(p api.InvoicePreview, l api.InvoiceLine) string { return stamp(orElse(l.To, p.To)) }},
	{"ChargePeriodStart", func(p api.InvoicePreview, l api.InvoiceLine) string { return stamp(orElse(l.From, p.From)) }},
	{"ConsumedQuantity", func(_ api.InvoicePreview, l api.InvoiceLine) string { return ifUsage(l, l.Quantity.String()) }},
	{"ConsumedUnit", func(_ api.InvoicePreview, l api.InvoiceLine) string { return ifUsage(l, cell(string(l.Meter))) }},
	{"ContractedCost", func(_ api.InvoicePreview, l api.InvoiceLine) string { return money(l.AmountMicros + l.DiscountMicros) }},
	// Commitments are not amortized over what they pay for.
	{"EffectiveCost", func(_ api.InvoicePreview, l api.InvoiceLine) string { return money(l.AmountMicros) }},
	{"InvoiceIssuerName", basalt},
	{"ListCost", func(_ api.InvoicePreview, l api.InvoiceLine) string { return money(l.AmountMicros + l.DiscountMicros) }},
	{"ListUnitPrice", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Per == 0 {
			return ""
		}
		return money(l.PriceMicros)
	}},
	{"PricingCategory", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Committed || l.Kind == api.LineCommitment {
			return "Committed"
		}
		return ifUsage(l, "Standard")
	}},
	{"PricingQuantity", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Per == 0 {
			return ""
		}
		return decimal(new(big.Rat).SetFrac(l.Quantity.Int(), big.NewInt(l.Per)).FloatString(12))
	}},
	{"PricingUnit", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		if l.Per == 0 {
			return ""
		}
		return cell(cmp.Or(l.Unit, strconv.FormatInt(l.Per, 10)+" "+string(l.Meter)))
	}},
	{"ProviderName", basalt},
	{"PublisherName", basalt},
	{"ResourceId", func(_ api.InvoicePreview, l api.InvoiceLine) string { return cell(l.Resource) }},
	{"ResourceName", func(_ api.InvoicePreview, l api.InvoiceLine) string { return cell(l.ResourceName) }},
	{"ServiceCategory", func(_ api.InvoicePreview, l api.InvoiceLine) string { return service(l.Meter) }},
	{"ServiceName", func(_ api.InvoicePreview, l api.InvoiceLine) string { return "Basalt " + service(l.Meter) }},
	{"SkuId", func(_ api.InvoicePreview, l api.InvoiceLine) string {
		return cell(cmp.Or(string(l.Meter), string(l.Kind)))
	}},
	{"SubAccountId", func(_ api.InvoicePreview, l api.InvoiceLine) string { return cell(string(l.Project)) }},
}

// WriteFOCUS writes invoices as CSV with the columns of FOCUS, a row for each
// line: the sum of BilledCost is their total.
func WriteFOCUS(w io.Writer, all ...api.InvoicePreview) error {
	out := csv.NewWriter(w)
	row := make([]string, len(focus))
	for i, c := range focus {
		row[i] = c.name
	}
	_ = out.Write(row) // Flush tells
	for _, p := range all {
		for _, l := range p.Lines {
			for i, c := range focus {
				row[i] = c.value(p, l)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

var category = map[api.InvoiceLineKind]string{api.LineUsage: "Usage", api.LineCommitment: "Purchase", api.LineMinimum: "Adjustment", api.LineTax: "Tax",
	api.LineLate: "Usage"}

func nothing(api.InvoicePreview, api.InvoiceLine) string { return "" }
func basalt(api.InvoicePreview, api.InvoiceLine) string  { return "Basalt" }

func ifUsage(l api.InvoiceLine, s string) string {
	if l.Kind != api.LineUsage {
		return ""
	}
	return s
}

func service(m api.Meter) string {
	switch m {
	case "":
		return "Other"
	case api.MeterVolume, api.MeterSnapshot:
		return "Storage"
	case api.MeterAddress, api.MeterEgress:
		return "Networking"
	}
	return "Compute"
}

func describe(l api.InvoiceLine) string {
	switch l.Kind {
	case api.LineUsage:
		return string(l.Meter) + " of " + cmp.Or(l.ResourceName, l.Resource)
	case api.LineCommitment:
		return "commitment to " + string(l.Meter)
	case api.LineMinimum:
		return "to the minimum of the period"
	}
	return l.Name
}

func orElse(t, otherwise time.Time) time.Time {
	if t.IsZero() {
		return otherwise
	}
	return t
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// money is micros in the currency.
func money(micros int64) string { return decimal(big.NewRat(micros, 1_000_000).FloatString(6)) }

// decimal without zeros at its end.
func decimal(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// cell is text that a spreadsheet takes for text: what tenants choose must not
// become a formula where an operator opens the file.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
