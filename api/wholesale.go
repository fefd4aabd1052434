package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxWholesale periods of a reseller.
const maxWholesale = 64

// Within is the part of a wholesale period that lies in another; from is not before to
// where there is none.
func (w Wholesale) Within(from, to time.Time) (time.Time, time.Time) {
	if w.From.After(from) {
		from = w.From
	}
	if !w.Until.IsZero() && w.Until.Before(to) {
		to = w.Until
	}
	return from, to
}

// ChangedWholesale checks the periods that an organization's terms name: they follow
// each other, and hours that have begun are charged for as they were before the change.
func ChangedWholesale(old, s OrganizationSpec, now time.Time) error {
	was, is := old.wholesale(), s.wholesale()
	if len(is) > maxWholesale {
		return invalid("spec.billing.wholesale", "has %d periods, want at most %d", len(is), maxWholesale)
	}
	var bad faults
	var last time.Time
	for i, w := range is {
		at := func(f string) string { return fmt.Sprintf("spec.billing.wholesale[%d].%s", i, f) }
		bad.note(fullHour(at("from"), w.From), fullHour(at("until"), w.Until), interval(at("until"), w.From, w.Until))
		if i > 0 && (last.IsZero() || w.From.Before(last)) {
			bad.note(invalid(at("from"), "must not be before the end of the period before"))
		}
		last = w.Until
	}
	next := nextHour(now)
	if !slices.Equal(begun(was, next), begun(is, next)) {
		bad.note(invalid("spec.billing.wholesale", "what hours before %s are charged for cannot change", next.Format(time.RFC3339)).
			WithHint("begin and end a period at a full hour from %s on, and keep those that have begun", next.Format(time.RFC3339)))
	}
	return bad.err()
}

func (s OrganizationSpec) wholesale() []Wholesale {
	if s.Billing == nil {
		return nil
	}
	return s.Billing.Wholesale
}

// begun are the parts of periods that lie before an hour.
func begun(all []Wholesale, hour time.Time) (out []Wholesale) {
	for _, w := range all {
		if from, until := w.Within(time.Time{}, hour); from.Before(until) {
			out = append(out, Wholesale{From: from.UTC(), Until: until.UTC()})
		}
	}
	return out
}

// Customer whose use the line charges its reseller for; empty: it is of something else.
func (l InvoiceLine) Customer() OrganizationID {
	if l.Project == "" && strings.HasPrefix(l.Resource, KindOrganization.Info().IDPrefix+"-") {
		return OrganizationID(l.Resource)
	}
	return ""
}
