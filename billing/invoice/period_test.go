package invoice

import (
	"math/rand/v2"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/basalt-gpu/basalt/api"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestPeriods(t *testing.T) {
	for _, c := range []struct{ zone, made, from, to string }{
		{"UTC", "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"UTC", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"Europe/Berlin", "2026-02-28T23:30:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},      // an hour shorter
		{"Europe/Berlin", "2026-10-15T00:00:00Z", "2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"},      // an hour longer
		{"America/New_York", "2026-03-31T22:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"},   // an hour shorter
		{"Asia/Kolkata", "2026-05-10T00:00:00Z", "2026-04-30T18:00:00Z", "2026-05-31T18:00:00Z"},       // midnight at half past the UTC hour
		{"Pacific/Apia", "2011-12-15T12:00:00Z", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z"},       // a day that was skipped
		{"America/Asuncion", "2017-10-15T12:00:00Z", "2017-10-01T03:00:00Z", "2017-11-01T03:00:00Z"},   // midnight of October 1 does not exist
		{"Pacific/Kiritimati", "2026-01-31T11:00:00Z", "2026-01-31T10:00:00Z", "2026-02-28T10:00:00Z"}, // 14 hours ahead
	} {
		zone := zoneOf(t, c.zone)
		made, err := time.Parse(time.RFC3339, c.made)
		if err != nil {
			t.Fatal(err)
		}
		from := FirstPeriod(made, zone)
		if got := from.Format(time.RFC3339); got != c.from {
			t.Errorf("%s: period begins at %s, want %s", c.zone, got, c.from)
		}
		if got := PeriodEnd(from, zone).Format(time.RFC3339); got != c.to {
			t.Errorf("%s: period ends at %s, want %s", c.zone, got, c.to)
		}
	}
}

// TestPeriodsFollowEachOther checks, for random zones and existing invoices, that
// periods follow each other without a gap, that each hour is in one, and that none is
// shorter than two weeks except one before an existing invoice.
func TestPeriodsFollowEachOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zones := []*time.Location{time.UTC, zoneOf(t, "Europe/Berlin"), zoneOf(t, "America/New_York"), zoneOf(t, "Asia/Kolkata"), zoneOf(t, "Pacific/Kiritimati"), zoneOf(t, "Pacific/Pago_Pago")}
	for range 40 {
		since := october.Add(time.Duration(random.Int64N(int64(400 * 24 * time.Hour))))
		now := since.AddDate(3, 0, 0)
		var invoices []api.Invoice
		for at := since; at.Before(now); at = at.AddDate(0, 0, random.IntN(40)) {
			open, _ := Open(since, invoices, zones[random.IntN(len(zones))], at)
			if len(open) > 0 && random.IntN(3) > 0 {
				p := open[random.IntN(len(open))]
				invoices = append(invoices, api.Invoice{Spec: api.InvoiceSpec{From: p.From, To: p.To}})
			}
		}
		all, present := Open(since, invoices, zones[0], now)
		for _, inv := range invoices {
			all = append(all, Whole(inv.Spec.From, inv.Spec.To))
		}
		covered := map[time.Time]int{}
		for _, p := range all {
			if !p.From.Before(p.To) {
				t.Fatalf("period %v is empty", p)
			}
			for h := p.From; h.Before(p.To); h = h.Add(time.Hour) {
				covered[h]++
			}
		}
		if now.Before(present.From) || !present.To.After(now) {
			t.Fatalf("the period of %s is from %s to %s, want it to include that time", now, present.From, present.To)
		}
		first, last := now, since
		for h, n := range covered {
			if n != 1 {
				t.Fatalf("hour %s is in %d periods, want 1", h, n)
			}
			if h.Before(first) {
				first = h
			}
			if h.After(last) {
				last = h
			}
		}
		if hours := int(last.Sub(first)/time.Hour) + 1; hours != len(covered) || first.After(since) || now.Sub(last) > 62*24*time.Hour {
			t.Fatalf("%d hours from %s to %s, of which %d are covered; want all since %s", hours, first, last, len(covered), since)
		}
	}
}

func TestMonthOf(t *testing.T) {
	if from, name := MonthOf(time.Date(2026, 3, 31, 22, 30, 0, 0, time.UTC), zoneOf(t, "Europe/Berlin")); name != "2026-04" || !from.Equal(time.Date(2026, 3, 31, 22, 0, 0, 0, time.UTC)) {
		t.Errorf("MonthOf = %s from %s, want 2026-04", name, from)
	}
}
