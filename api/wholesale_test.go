package api

import (
	"testing"
	"time"
)

// TestChangedWholesale checks that the wholesale periods of hours that have begun
// cannot be changed.
func TestChangedWholesale(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 30, 0, 0, time.UTC)
	at := func(hour int) time.Time { return time.Date(2026, 3, 10, hour, 0, 0, 0, time.UTC) }
	of := func(all ...Wholesale) OrganizationSpec {
		return OrganizationSpec{Billing: &OrganizationBilling{Wholesale: all}}
	}
	open, ended := Wholesale{From: at(5)}, Wholesale{From: at(5), Until: at(8)}
	for name, c := range map[string]struct {
		old, s OrganizationSpec
		fine   bool
	}{
		"begins at the next hour":        {of(), of(Wholesale{From: at(13)}), true},
		"began with this hour":           {of(), of(Wholesale{From: at(12)}), false},
		"stays":                          {of(open), of(open), true},
		"ends at the next hour":          {of(open), of(Wholesale{From: at(5), Until: at(13)}), true},
		"ended before":                   {of(open), of(Wholesale{From: at(5), Until: at(12)}), false},
		"never was":                      {of(open), of(), false},
		"never was, without terms":       {of(open), OrganizationSpec{}, false},
		"began earlier":                  {of(open), of(Wholesale{From: at(4)}), false},
		"ended later":                    {of(ended), of(open), false},
		"ended, and begins again":        {of(ended), of(ended, Wholesale{From: at(14)}), true},
		"ended, and began again":         {of(ended), of(ended, Wholesale{From: at(9)}), false},
		"what had not begun is left out": {of(ended, Wholesale{From: at(14)}), of(ended), true},
		"without a beginning":            {of(), of(Wholesale{}), false},
	} {
		if err := ChangedWholesale(c.old, c.s, now); (err == nil) != c.fine {
			t.Errorf("%s: ChangedWholesale = %v, want no error: %v", name, err, c.fine)
		}
	}
	many := make([]Wholesale, maxWholesale+1)
	for i := range many {
		many[i] = Wholesale{From: at(13).AddDate(0, 0, i), Until: at(14).AddDate(0, 0, i)}
	}
	if err := ChangedWholesale(of(), of(many...), now); CodeOf(err) != CodeInvalid {
		t.Errorf("ChangedWholesale to %d periods = %v, want code %s", len(many), err, CodeInvalid)
	}
}
