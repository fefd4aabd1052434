package invoice

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// shortest period that is invoiced by itself: what a change of the time zone
// leaves before the next month belongs to that.
const shortest = 14 * 24 * time.Hour

// FirstPeriod is where the periods of an organization begin: with the month in
// which it was made.
func FirstPeriod(made time.Time, zone *time.Location) time.Time {
	y, m, _ := made.In(zone).Date()
	return midnight(y, m, zone)
}

// PeriodEnd is where the period ends that begins there, and the next one
// begins: with the month in that zone. Periods follow each other without a gap
// whatever the zone was before.
func PeriodEnd(from time.Time, zone *time.Location) time.Time {
	y, m, _ := from.In(zone).Date()
	for {
		m++
		if end := midnight(y, m, zone); end.Sub(from) >= shortest {
			return end
		}
	}
}

// midnight with which a month begins, in UTC. Use is known by the hour: where a
// zone's midnight is at half past, the hour that has begun counts whole.
func midnight(y int, m time.Month, zone *time.Location) time.Time {
	return time.Date(y, m, 1, 0, 0, 0, 0, zone).UTC().Truncate(time.Hour)
}

// NextMonth is when the next calendar month begins in a zone.
func NextMonth(now time.Time, zone *time.Location) time.Time {
	y, m, _ := now.In(zone).Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, zone)
}

// MonthOf is when the calendar month of a moment began in a zone, and its name.
func MonthOf(now time.Time, zone *time.Location) (from time.Time, name string) {
	y, m, _ := now.In(zone).Date()
	return midnight(y, m, zone), now.In(zone).Format("2006-01")
}

// Period of an invoice: the hours that begin in it.
type Period struct{ From, To time.Time }

// Open are the periods that have ended by now and have no invoice, oldest
// first: from the month of since on, around those that have one. present is
// where the one begins that has not ended.
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
