package invoice

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// Draft is the content of an invoice to be issued.
type Draft struct {
	Organization api.Organization
	Seller       api.Organization   // its reseller; without an ID it is the cluster's operator
	Book         api.PriceBook      // the price book at the end of the period
	Prices       pricebook.Schedule // the prices that the period was rated by
	Period       Period
	Preview      api.InvoicePreview // of the period
	Taxes        api.TaxSettings    // of the seller
	Late         []api.InvoiceLine  // of earlier periods
	At           time.Time
}

// seller returns the party that the invoice names as the seller: that of the price book, or
// the reseller if the price book is not its own or names nobody. The customer has a contract
// with the reseller, whoever has set the prices.
func (d Draft) seller() api.Party {
	out := d.named()
	out.Country, out.TaxID = d.Taxes.Country, cmp.Or(d.Taxes.TaxID, out.TaxID)
	return out
}

// named returns the seller's name and address.
func (d Draft) named() api.Party {
	stated, s := d.Prices.Last().Prices.Seller, d.Seller
	if s.Meta.ID == "" || d.Book.Meta.Organization == s.Meta.ID && stated.Name != "" {
		return stated
	}
	out := api.Party{Name: cmp.Or(s.Spec.DisplayName, s.Meta.Name)}
	if b := s.Spec.Billing; b != nil {
		out.Address, out.TaxID = b.Address, b.TaxID
	}
	return out
}

// IDOf returns the ID of a period's invoice, which is the same however often it is
// issued.
func IDOf(org api.OrganizationID, from time.Time) api.InvoiceID {
	sum := sha256.Sum256([]byte(string(org) + "\x00" + from.UTC().Format(time.RFC3339)))
	return api.InvoiceID(api.NewID(api.KindInvoice, sum[:]))
}

// SeriesID returns the ID of a seller's series of numbers.
func SeriesID(seller api.OrganizationID) string {
	sum := sha256.Sum256([]byte("series\x00" + string(seller)))
	return api.NewID(api.KindSeries, sum[:])
}

// Issue returns the commands that issue an invoice under the seller's next number, in
// one batch. Concurrent attempts are refused, since the series has changed and the
// period is claimed. revision is the series', 0 if it does not exist yet.
func Issue(d Draft, series api.SeriesSpec, revision int64) ([]api.Command, api.InvoiceSpec, error) {
	org, terms := d.Organization, d.Organization.Spec.Billing
	if d.Taxes.Undecided {
		return nil, api.InvoiceSpec{}, api.Errorf(api.CodeState, "the taxes of invoices are undecided: before feature level 12, price books had different ones").WithHint("save the seller's tax settings")
	}
	p := condense(d.Preview)
	spec := api.InvoiceSpec{
		Seller: org.Spec.Parent, From: p.From, To: p.To, Month: d.Period.month(), TimeZone: terms.TimeZone, IssuedAt: d.At.UTC(),
		DueAt: d.At.UTC().AddDate(0, 0, int(terms.DaysUntilDue())), Currency: p.Currency, Lines: append(p.Lines, d.Late...), Tax: p.Tax,
		PriceBook: api.PriceBookID(d.Book.Meta.ID), PriceBookRevision: d.Book.Meta.Revision, Prices: d.Prices.Last().Prices,
		Customer: api.Party{Name: org.Meta.Name, Address: terms.Address, Country: terms.Country, TaxID: terms.TaxID},
	}
	spec.Prices.Seller = d.seller()
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

// numbered returns the command that updates a series.
func numbered(s api.SeriesSpec, revision int64) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindSeries, ID: SeriesID(s.Seller), Expect: revision, Data: api.Encode(s)}
}

// documentClaim returns the claim that makes a document's number unique.
func documentClaim(seller api.OrganizationID, number string) string {
	return "number/" + string(seller) + "/" + number
}

// maxLines limits the lines of an invoice, which must fit into an object of the store.
// If there are more, lines are summed by project and price, and no longer shown by
// resource.
const maxLines = 5000

// condense shortens an invoice that is too long. Sums stay the same to the micro.
func condense(p api.InvoicePreview) api.InvoicePreview {
	if len(p.Lines) > maxLines {
		p.Lines = sums(p.Lines)
	}
	return p
}

// Members returns the IDs of the lines that a line is the sum of, or its own ID.
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

// sums returns sums of lines by project and price. Lines of a reseller's customers are
// sums already.
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

// sumPrefix is the prefix of the IDs of lines that are sums over resources.
const sumPrefix = "sum-"

func sumID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return sumPrefix + hex.EncodeToString(sum[:6])
}

// isSum reports whether a line is a sum over resources.
func isSum(line string) bool { return strings.HasPrefix(line, sumPrefix) }
