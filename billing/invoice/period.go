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

// Period is the period of an invoice: the hours that begin in it.
type Period struct{ From, To time.Time }

// Open returns the periods that have ended by now and have no invoice, oldest first:
// starting with the month of since, around those that have one. present is the
// beginning of the current period.
func Open(since time.Time, invoices []api.Invoice, zone *time.Location, now time.Time) (open []Period, present time.Time) {
	invoices = slices.SortedFunc(slices.Values(invoices), func(a, b api.Invoice) int { return a.Spec.From.Compare(b.Spec.From) })
	from := FirstPeriod(since, zone)
	if len(invoices) > 0 && invoices[0].Spec.From.Before(from) {
		from = invoices[0].Spec.From
	}
	for {
		for len(invoices) > 0 && !invoices[0].Spec.From.After(from) {
			if to := invoices[0].Spec.To; to.After(from) {
				from = to
			}
			invoices = invoices[1:]
		}
		end := PeriodEnd(from, zone)
		if len(invoices) > 0 && invoices[0].Spec.From.Before(end) {
			end = invoices[0].Spec.From
		}
		if end.After(now) {
			return open, from
		}
		open = append(open, Period{from, end})
		from = end
	}
}
