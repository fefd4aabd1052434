package api

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxWholesale limits the wholesale periods of a reseller.
const maxWholesale = 64

// Within returns the intersection of a wholesale period with another; from is not
// before to if they do not overlap.
func (w Wholesale) Within(from, to time.Time) (time.Time, time.Time) {
	if w.From.After(from) {
		from = w.From
	}
	if !w.Until.IsZero() && w.Until.Before(to) {
		to = w.Until
	}
	return from, to
}

// ChangedWholesale checks the wholesale periods of an organization's terms: they must
// be in order, and the charges for hours that have begun must not change.
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

// begun returns the parts of periods before an hour.
func begun(all []Wholesale, hour time.Time) (out []Wholesale) {
	for _, w := range all {
		if from, until := w.Within(time.Time{}, hour); from.Before(until) {
			out = append(out, Wholesale{From: from.UTC(), Until: until.UTC()})
		}
	}
	return out
}

// Customer returns the customer whose usage the line charges its reseller for; empty
// for other lines.
func (l InvoiceLine) Customer() OrganizationID {
	if l.Project == "" && strings.HasPrefix(l.Resource, KindOrganization.Info().IDPrefix+"-") {
		return OrganizationID(l.Resource)
	}
	return ""
}
