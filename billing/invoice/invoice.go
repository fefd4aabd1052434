package invoice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Rating computes an organization's invoice from its usage.
type Rating struct {
	organization api.OrganizationID
	book         tariff.Book
	from, to     time.Time
	rater        *tariff.Rater
	shares       shares
	taxation     Taxation
	names        map[string]*named
	// before is the rating of the month until from, if the period follows a final invoice:
	// the invoice is the difference to it.
	before *Rating
}

// named is the latest name of a resource.
type named struct {
	name string
	at   time.Time
}

// NewRating returns a rating of the hours that begin in a period; commitments and the
// minimum are those of the period, or its part of those of its month. Usage is added
// from the start of the month on. Errors contain an *api.Error.
func NewRating(org api.OrganizationID, prices pricebook.Schedule, p Period) (*Rating, error) {
	return NewRatingSoFar(org, prices, p, p.To)
}

// NewRatingSoFar returns a rating like NewRating of the hours that begin before now;
// commitments and the minimum are nonetheless those of the period.
func NewRatingSoFar(org api.OrganizationID, prices pricebook.Schedule, p Period, now time.Time) (*Rating, error) {
	if !p.From.Before(now) || p.To.Before(now) {
		return nil, api.Errorf(api.CodeInvalid, "the end of the period is before its start").At("to")
	}
	span := pricebook.Span{From: p.Start, To: p.To, Known: p.To, End: p.End}
	book, err := tariffOf(prices, span)
	if err != nil {
		return nil, err
	}
	r := ratingBy(org, book, p.Start, now)
	if p.IsRest() {
		span.To = p.From
		if book, err = tariffOf(prices, span); err != nil {
			return nil, err
		}
		r.before = ratingBy(org, book, p.Start, p.From)
	}
	return r, nil
}

// tariffOf returns the validated tariff of a span.
func tariffOf(prices pricebook.Schedule, span pricebook.Span) (tariff.Book, error) {
	book, err := prices.Tariff(span)
	if err == nil {
		err = book.Validate()
	}
	if err != nil {
		return book, fmt.Errorf("compute the tariff %s: %w", during(span.From, span.To), err)
	}
	return book, nil
}

// during formats a period for errors.
func during(from, to time.Time) string {
	return "from " + from.UTC().Format(time.RFC3339) + " to " + to.UTC().Format(time.RFC3339)
}

func ratingBy(org api.OrganizationID, book tariff.Book, from, now time.Time) *Rating {
	return &Rating{organization: org, book: book, from: from.UTC(), to: now.UTC(), rater: tariff.NewRater(book), names: map[string]*named{}}
}

// Add adds usage in the period, in the order of api.Use.Compare. Errors contain an *api.Error:
// CodeState if a used meter has no price, CodeInvalid for invalid usage and usage
// outside the period or out of order.
func (r *Rating) Add(u api.Use) error {
	if u.Hour.Before(r.from) || !u.Hour.Before(r.to) {
		return api.Errorf(api.CodeInvalid, "usage in hour %s is outside of the period", u.Hour)
	}
	r.name(u)
	if r.before != nil && u.Hour.Before(r.before.to) {
		if err := r.before.Add(u); err != nil {
			return err
		}
	}
	return r.shares.add(u, r.book, r.rater.Add)
}

// name records the name of the resource that the usage is charged to.
func (r *Rating) name(u api.Use) {
	_, resource := u.Charged()
	n := r.names[resource]
	if n == nil {
		n = &named{}
		r.names[resource] = n
	}
	if u.Customer != "" {
		n.name = u.CustomerName
	} else if !n.at.After(u.NamedAt) {
		n.name, n.at = u.ResourceName, u.NamedAt
	}
}

// Invoice returns the invoice of all added usage; its total is the sum of its lines.
func (r *Rating) Invoice() (api.InvoicePreview, error) {
	p, err := r.sinceStart()
	if err != nil || r.before == nil {
		return p, err
	}
	before, err := r.before.sinceStart()
	return rest(p, before), err
}

// sinceStart returns the invoice of all usage since the start of the month.
func (r *Rating) sinceStart() (api.InvoicePreview, error) {
	if err := r.shares.flush(r.book, r.rater.Add); err != nil {
		return api.InvoicePreview{}, err
	}
	st, err := r.rater.Statement(r.from, r.to)
	if err != nil {
		return api.InvoicePreview{}, fmt.Errorf("rate the usage of organization %s %s: %w", r.organization, during(r.from, r.to), err)
	}
	p := api.InvoicePreview{Organization: r.organization, Currency: st.Currency, From: st.From, To: st.To,
		Tax: r.taxation.Reason, TotalMicros: st.TotalMicros, Lines: make([]api.InvoiceLine, 0, len(st.Charges)+len(st.Fees)+len(st.Taxes)+1)}
	for _, c := range st.Charges {
		p.Lines = append(p.Lines, r.usage(c))
	}
	for i, f := range st.Fees {
		l := api.InvoiceLine{ID: lineID(api.LineCommitment, i), Kind: api.LineCommitment, Meter: f.Meter,
			Quantity: f.Quantity, Per: f.Per, PriceMicros: f.PriceMicros, Unit: r.unitOf(f.Meter, f.Per), AmountMicros: f.FeeMicros}
		if f.From.After(r.from) || f.Until.Before(r.to) { // it covers a part of the period
			l.From, l.To = f.From.UTC(), f.Until.UTC()
		}
		p.Lines = append(p.Lines, l)
	}
	if st.TopUpMicros > 0 {
		p.Lines = append(p.Lines, api.InvoiceLine{ID: lineID(api.LineMinimum, 0), Kind: api.LineMinimum, AmountMicros: st.TopUpMicros})
	}
	for i, l := range st.Taxes {
		p.Lines = append(p.Lines, api.InvoiceLine{ID: lineID(api.LineTax, i), Kind: api.LineTax, Name: l.Name, BasisPoints: l.BasisPoints, AmountMicros: l.AmountMicros})
	}
	return p, nil
}

func (r *Rating) usage(c tariff.Charge) api.InvoiceLine {
	rate, name := r.book.Rates[c.Rate], ""
	if n := r.names[c.Resource]; n != nil {
		name = n.name
	}
	l := api.InvoiceLine{
		ID: lineID(api.LineUsage, c.Key), Kind: api.LineUsage, Project: api.ProjectID(c.Project), Meter: c.Meter,
		Resource: c.Resource, ResourceName: name, From: c.First, To: c.Last.Add(time.Hour),
		Quantity: c.Quantity, Per: c.Per, PriceMicros: c.PriceMicros, Unit: rate.Unit, Where: rate.Where, Committed: c.Tier == tariff.Committed,
		DiscountMicros: c.OffMicros, AmountMicros: c.AmountMicros - c.OffMicros,
	}
	if len(rate.Tiers) > 1 && !l.Committed {
		l.Tier = c.Tier + 1
	}
	if c.Discount >= 0 {
		l.BasisPoints = r.book.Discounts[c.Discount].BasisPoints
	}
	return l
}

// unitOf returns the name of per units of a meter, if a price defines it.
func (r *Rating) unitOf(m api.Meter, per int64) string {
	for _, p := range r.book.Rates {
		if p.Meter == m && p.Per == per {
			return p.Unit
		}
	}
	return ""
}

// lineID returns an ID derived from what a line is for; the same prices give the same
// ID.
func lineID(kind api.InvoiceLineKind, of any) string {
	raw, err := json.Marshal([]any{kind, of})
	if err != nil {
		panic(err) // strings and integers
	}
	sum := sha256.Sum256(raw)
	return "line-" + hex.EncodeToString(sum[:6])
}
