package invoice

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// Draft is what an invoice is made of.
type Draft struct {
	Organization api.Organization
	Book         api.PriceBook      // by which it pays at the end of the period
	Prices       pricebook.Schedule // by which the period was rated
	Preview      api.InvoicePreview // of the period
	Late         []api.InvoiceLine  // of earlier ones
	At           time.Time
}

// IDOf of a period: the same whoever issues it, however often.
func IDOf(org api.OrganizationID, from time.Time) api.InvoiceID {
	sum := sha256.Sum256([]byte(string(org) + "\x00" + from.UTC().Format(time.RFC3339)))
	return api.InvoiceID(api.NewID(api.KindInvoice, sum[:]))
}

// SeriesID of a seller's numbers.
func SeriesID(seller api.OrganizationID) string {
	sum := sha256.Sum256([]byte("series\x00" + string(seller)))
	return api.NewID(api.KindSeries, sum[:])
}

// Issue makes the commands that issue an invoice under the seller's next
// number, in one batch: both happen or none does, and whoever was slower is
// refused, as the series has changed and the period is claimed. revision is the
// series', 0 when there is none yet.
func Issue(d Draft, series api.SeriesSpec, revision int64) ([]api.Command, api.InvoiceSpec, error) {
	org, terms := d.Organization, d.Organization.Spec.Billing
	p := condense(d.Preview)
	spec := api.InvoiceSpec{
		Seller: org.Spec.Parent, From: p.From, To: p.To, TimeZone: terms.TimeZone, IssuedAt: d.At.UTC(),
		DueAt: d.At.UTC().AddDate(0, 0, int(terms.DaysUntilDue())), Currency: p.Currency, Lines: append(p.Lines, d.Late...),
		PriceBook: api.PriceBookID(d.Book.Meta.ID), PriceBookRevision: d.Book.Meta.Revision, Prices: d.Prices.Last().Prices,
		Customer: api.Party{Name: org.Meta.Name, Address: terms.Address, TaxID: terms.TaxID},
	}
	if len(d.Prices) > 1 {
		spec.Editions = d.Prices
	}
	if last := d.Prices.Last(); last.PriceBook != "" {
		spec.PriceBook = last.PriceBook
	}
	if org.Spec.DisplayName != "" {
		spec.Customer.Name = org.Spec.DisplayName
	}
	for _, l := range spec.Lines {
		total := spec.TotalMicros + l.AmountMicros
		if (l.AmountMicros > 0) != (total > spec.TotalMicros) && l.AmountMicros != 0 {
			return nil, spec, api.Errorf(api.CodeTooLarge, "the total of the invoice is out of range")
		}
		spec.TotalMicros = total
	}
	series.Seller = spec.Seller
	series.Invoices++
	spec.Number = api.DocumentNumber(api.InvoiceNumbers, series.Invoices)
	id := IDOf(api.OrganizationID(org.Meta.ID), p.From)
	return []api.Command{
		numbered(series, revision),
		{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: string(id), Name: api.DocumentName(spec.Number), Organization: org.Meta.ID, Data: api.Encode(spec),
			Claims: []string{fmt.Sprintf("invoice/%s/%d", org.Meta.ID, p.From.Unix()), documentClaim(spec.Seller, spec.Number)}},
	}, spec, nil
}

// numbered is the command that moves a series on.
func numbered(s api.SeriesSpec, revision int64) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindSeries, ID: SeriesID(s.Seller), Expect: revision, Data: api.Encode(s)}
}

// documentClaim makes a number one document's.
func documentClaim(seller api.OrganizationID, number string) string {
	return "number/" + string(seller) + "/" + number
}

// maxLines of an invoice: an object of the store has to hold them. What is more
// is summed by project and price, and no longer shown by resource.
const maxLines = 5000

// condense an invoice that is too long. Sums stay to the micro.
func condense(p api.InvoicePreview) api.InvoicePreview {
	if len(p.Lines) > maxLines {
		p.Lines = sums(p.Lines)
	}
	return p
}

// Members are the ids of the lines that a line is the sum of, or its own.
func Members(line string, of []api.InvoiceLine) (ids []string) {
	if !isSum(line) {
		return []string{line}
	}
	for _, l := range of {
		if l.Kind == api.LineUsage && sumID(sumKey(l)) == line {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

func sumKey(l api.InvoiceLine) string {
	key := fmt.Sprint(l.Project, "\x00", l.Meter, "\x00", l.Per, l.PriceMicros, l.Tier, l.Committed, l.BasisPoints)
	if l.Where != (api.PriceSelector{}) {
		key += "\x00" + l.Where.String()
	}
	return key
}

// sums of lines by project and price. Those of a reseller's customers are sums already.
func sums(lines []api.InvoiceLine) (out []api.InvoiceLine) {
	at := map[string]int{}
	for _, l := range lines {
		if l.Kind != api.LineUsage || l.Customer() != "" {
			out = append(out, l)
			continue
		}
		key := sumKey(l)
		i, ok := at[key]
		if !ok {
			at[key] = len(out)
			l.Resource, l.ResourceName, l.ID = "", "", sumID(key)
			out = append(out, l)
			continue
		}
		s := &out[i]
		s.Quantity, s.AmountMicros, s.DiscountMicros = s.Quantity.Plus(l.Quantity), s.AmountMicros+l.AmountMicros, s.DiscountMicros+l.DiscountMicros
		if l.From.Before(s.From) {
			s.From = l.From
		}
		if l.To.After(s.To) {
			s.To = l.To
		}
	}
	return out
}

// sumPrefix is of the ids of lines that are sums over resources.
const sumPrefix = "sum-"

func sumID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return sumPrefix + hex.EncodeToString(sum[:6])
}

// isSum reports whether a line is one over resources.
func isSum(line string) bool { return strings.HasPrefix(line, sumPrefix) }
