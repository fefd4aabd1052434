package invoice

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// shortest is the shortest period that is invoiced separately: a shorter rest of a
// month after a change of the time zone belongs to the next month.
const shortest = 14 * 24 * time.Hour

// FirstPeriod returns the beginning of an organization's first period: of the month in
// which it was created.
func FirstPeriod(made time.Time, zone *time.Location) time.Time {
	y, m, _ := made.In(zone).Date()
	return midnight(y, m, zone)
}

// PeriodEnd returns the end of the period that begins at from, where the next one
// begins: with a month in that zone. Periods follow each other without a gap, whatever
// the zone was before.
func PeriodEnd(from time.Time, zone *time.Location) time.Time {
	y, m, _ := from.In(zone).Date()
	for {
		m++
		if end := midnight(y, m, zone); end.Sub(from) >= shortest {
			return end
		}
	}
}

// midnight returns the beginning of a month, in UTC. Usage is recorded by the hour: if
// a zone's midnight is at half past, the hour that has begun counts as a whole.
func midnight(y int, m time.Month, zone *time.Location) time.Time {
	return time.Date(y, m, 1, 0, 0, 0, 0, zone).UTC().Truncate(time.Hour)
}

// NextMonth returns when the next calendar month begins in a zone.
func NextMonth(now time.Time, zone *time.Location) time.Time {
	y, m, _ := now.In(zone).Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, zone)
}

// MonthOf returns when the calendar month of a time begins in a zone, and its name.
func MonthOf(now time.Time, zone *time.Location) (from time.Time, name string) {
	y, m, _ := now.In(zone).Date()
	return midnight(y, m, zone), now.In(zone).Format("2006-01")
}

// Period is the hours that an invoice covers: those that begin at From or later and
// before To. If a final invoice was issued before the end of a month, they are a part of
// the month, which begins at Start and ends at End.
type Period struct{ From, To, Start, End time.Time }

// Whole returns a period that is no part of a longer one.
func Whole(from, to time.Time) Period { return Period{From: from, To: to, Start: from, End: to} }

// PeriodOf returns the period of an issued invoice.
func PeriodOf(inv api.InvoiceSpec) Period {
	if inv.Month == nil {
		return Whole(inv.From, inv.To)
	}
	return Period{From: inv.From, To: inv.To, Start: inv.Month.From, End: inv.Month.To}
}

// Until returns the part of the period before a time, or the period if it ends earlier.
func (p Period) Until(to time.Time) Period {
	if to.Before(p.To) {
		p.To = to
	}
	return p
}

// month returns the month that a period is a part of; nil: it is no part.
func (p Period) month() *api.InvoiceMonth {
	if p.Start.Equal(p.From) && p.End.Equal(p.To) {
		return nil
	}
	return &api.InvoiceMonth{From: p.Start, To: p.End}
}

// Open returns the periods that have ended by now and have no invoice, oldest first:
// starting with the month of since, around those that have one. present is the current
// period.
func Open(since time.Time, invoices []api.Invoice, zone *time.Location, now time.Time) (open []Period, present Period) {
	invoices = slices.SortedFunc(slices.Values(invoices), func(a, b api.Invoice) int { return a.Spec.From.Compare(b.Spec.From) })
	from := FirstPeriod(since, zone)
	if len(invoices) > 0 && invoices[0].Spec.From.Before(from) {
		from = invoices[0].Spec.From
	}
	var month *api.InvoiceMonth // that a final invoice before from is a part of
	for {
		for len(invoices) > 0 && !invoices[0].Spec.From.After(from) {
			if inv := invoices[0].Spec; inv.To.After(from) {
				from, month = inv.To, inv.Month
			}
			invoices = invoices[1:]
		}
		p := Whole(from, PeriodEnd(from, zone))
		if month != nil && from.Before(month.To) {
			p = Period{From: from, To: month.To, Start: month.From, End: month.To}
		}
		if len(invoices) > 0 && invoices[0].Spec.From.Before(p.To) {
			p.To = invoices[0].Spec.From
			if p.Start.Equal(from) {
				p.End = p.To
			}
		}
		if p.To.After(now) {
			return open, p
		}
		open = append(open, p)
		from = p.To
	}
}

// Final returns the periods that the final invoices of an organization are for, oldest
// first: those that have ended and have no invoice, and the current one until the end of
// the hour of now, since usage is recorded by the hour.
func Final(since time.Time, invoices []api.Invoice, zone *time.Location, now time.Time) []Period {
	to := now.UTC().Truncate(time.Hour)
	if to.Before(now) {
		to = to.Add(time.Hour)
	}
	periods, present := Open(since, invoices, zone, to)
	if present.From.Before(to) {
		periods = append(periods, present.Until(to))
	}
	return periods
}

// maxParts limits the final invoices of a month, since each later invoice of the month is
// computed from its beginning.
const maxParts = 10

// CheckParts returns an error if a period would be one part too many of its month.
func CheckParts(org string, invoices []api.Invoice, p Period) error {
	n := 0
	for _, inv := range invoices {
		if m := inv.Spec.Month; m != nil && m.From.Equal(p.Start) {
			n++
		}
	}
	if n < maxParts || p.To.Equal(p.End) {
		return nil
	}
	return api.Errorf(api.CodeState, "organization %s already has %d final invoices of the month until %s", org, n, p.End.Format(time.RFC3339)).
		WithHint("what was used since is invoiced at the end of the month")
}

// IsRest reports whether the period follows a final invoice in its month.
func (p Period) IsRest() bool { return !p.Start.Equal(p.From) }
