package billing

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Invoice is what an organization's use of a period costs.
type Invoice struct {
	Organization api.OrganizationID
	Currency     string
	From, To     time.Time
	Lines        []Line
	TotalMicros  int64 // the sum of the lines
}

// InPeriod says whether a record is of the period: its use ended after from,
// and not after to. Every record is of exactly one of periods that follow each
// other; the meter cuts records at the hours, so that none has a part in two
// months but work that was counted after the end of one, which is charged in
// the next.
func InPeriod(s api.UsageRecordSpec, from, to time.Time) bool {
	return s.End.After(from) && !s.End.After(to)
}

// Preview is the invoice that the organization's records of the period make;
// records of others and of other times are left out. Errors are *api.Error, as
// Rate's, and CodeInvalid when the period ends before it begins.
func Preview(org api.OrganizationID, records []api.UsageRecord, book api.PriceBookSpec, from, to time.Time) (Invoice, error) {
	inv := Invoice{Organization: org, Currency: book.Currency, From: from.UTC(), To: to.UTC()}
	if !from.Before(to) {
		return Invoice{}, api.Errorf(api.CodeInvalid, "the period ends before it begins").At("to")
	}
	var own []api.UsageRecord
	for _, r := range records {
		if r.Meta.Organization == string(org) && InPeriod(r.Spec, from, to) {
			own = append(own, r)
		}
	}
	var err error
	if inv.Lines, err = Rate(own, book); err != nil {
		return Invoice{}, err
	}
	for _, l := range inv.Lines {
		if inv.TotalMicros, err = sum(inv.TotalMicros, l.AmountMicros); err != nil {
			return Invoice{}, api.Errorf(api.CodeTooLarge, "the total: %v", err)
		}
	}
	return inv, nil
}

// API is the invoice as the API answers it.
func (inv Invoice) API() api.InvoicePreview {
	p := api.InvoicePreview{Organization: inv.Organization, Currency: inv.Currency, From: inv.From, To: inv.To,
		TotalMicros: inv.TotalMicros, Lines: make([]api.InvoiceLine, 0, len(inv.Lines))}
	for _, l := range inv.Lines {
		p.Lines = append(p.Lines, api.InvoiceLine{
			Project: api.ProjectID(l.Project), Meter: l.Price.Meter, Resource: l.Resource, ResourceName: l.ResourceName,
			Quantity: l.Quantity, Per: l.Price.Per, PriceMicros: l.Price.PriceMicros, Unit: l.Price.Unit, AmountMicros: l.AmountMicros,
		})
	}
	return p
}
