package dunning

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// TestCollection checks that nothing gets worse while a card is charged, that there is no
// reminder before a charge is repeated but resources are stopped in time, and that all of
// it ends.
func TestCollection(t *testing.T) {
	now := november
	terms := api.OrganizationBilling{Mode: api.BillingInvoice, StopAfterDays: api.Setting(5), SuspendAfterDays: api.Setting(10)}
	begun, next := now.Add(-time.Hour), now.Add(2*day)
	charging := api.StoredAutoPay{Spec: api.AutoPaySpec{Enabled: true}, Status: api.AutoPayStatus{Checkout: "chk-1", Invoice: "inv-2", Since: &begun}}
	retrying := api.StoredAutoPay{Spec: api.AutoPaySpec{Enabled: true}, Status: api.AutoPayStatus{Invoices: []api.AutoPayInvoice{{Invoice: "inv-1", Failures: 1, NextAt: &next}}}}
	stopped := api.StoredAutoPay{Spec: api.AutoPaySpec{Enabled: true}, Status: api.AutoPayStatus{Invoices: []api.AutoPayInvoice{{Invoice: "inv-1", Failures: 4}}}}
	enabled := api.StoredAutoPay{Spec: api.AutoPaySpec{Enabled: true}}
	hour := time.Hour
	for name, c := range map[string]struct {
		pays        api.StoredAutoPay
		issued, due time.Duration // before now
		was         api.BillingState
		after       time.Duration
		want        api.BillingState
	}{
		"no automatic payment":            {api.StoredAutoPay{}, hour, 0, api.BillingOK, 0, api.BillingWarn},
		"just issued":                     {enabled, time.Minute, 0, api.BillingOK, 0, api.BillingOK},
		"just issued, never decided":      {enabled, time.Minute, 0, "", 0, api.BillingOK},
		"issued, but not charged in time": {enabled, 2 * hour, 0, api.BillingOK, 0, api.BillingWarn},
		"being charged":                   {charging, 20 * day, 6 * day, api.BillingOK, 0, api.BillingOK},
		"being charged after a reminder":  {charging, 20 * day, 11 * day, api.BillingWarn, 0, api.BillingWarn},
		"charged without an end":          {charging, 20 * day, 6 * day, api.BillingOK, 24 * hour, api.BillingStop},
		"to be repeated":                  {retrying, 20 * day, day, api.BillingOK, 0, api.BillingOK},
		"to be repeated, late":            {retrying, 20 * day, 6 * day, api.BillingOK, 0, api.BillingStop},
		"not repeated in time":            {retrying, 20 * day, 0, api.BillingOK, 2*day + hour, api.BillingWarn},
		"not repeated any more":           {stopped, 20 * day, day, api.BillingOK, 0, api.BillingWarn},
		"a state that gets better":        {charging, 20 * day, day, api.BillingStop, 0, api.BillingWarn},
	} {
		s := Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Invoice: "inv-1", Number: "INV-000001", DueAt: now.Add(-c.due), LeftMicros: 5}}}
		s.Collection = CollectionOf(c.pays, s.Open, "XXX", now.Add(-c.issued)) // no least charge
		if got := NextStatus(now.Add(c.after), terms, s, api.BillingStatus{State: c.was}); got.State != c.want {
			t.Errorf("%s: status %+v, want state %s", name, got, c.want)
		}
	}
	terms.DeleteAfterDays = 1
	s := Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Invoice: "inv-1", DueAt: now.Add(-20 * day), LeftMicros: 5}}}
	s.Collection = CollectionOf(charging, s.Open, "XXX", now)
	if got := NextStatus(now, terms, s, api.BillingStatus{State: api.BillingSuspended}); got.DeleteWarnedAt != nil || got.State != api.BillingSuspended {
		t.Errorf("status during a charge = %+v, want no announcement of the deletion", got)
	}
	if got := NextStatus(now.Add(day), terms, s, api.BillingStatus{State: api.BillingSuspended}); got.DeleteWarnedAt == nil {
		t.Errorf("status after the charge = %+v, want the deletion announced", got)
	}
}

// TestSmallInvoices checks that invoices that amount to less than is charged at once have
// no consequences while they are paid automatically, and others do.
func TestSmallInvoices(t *testing.T) {
	now := november
	enabled := api.StoredAutoPay{Spec: api.AutoPaySpec{Enabled: true}}
	due := now.Add(-30 * day)
	for name, c := range map[string]struct {
		pays     api.StoredAutoPay
		currency string
		left     []int64
		want     api.BillingState
	}{
		"less than the least":      {enabled, "EUR", []int64{490_000}, api.BillingOK},
		"several, less together":   {enabled, "EUR", []int64{200_000, 290_000}, api.BillingOK},
		"rounded up, the least":    {enabled, "EUR", []int64{490_001}, api.BillingSuspended},
		"the least together":       {enabled, "EUR", []int64{250_000, 250_000}, api.BillingSuspended},
		"not paid automatically":   {api.StoredAutoPay{}, "EUR", []int64{490_000}, api.BillingSuspended},
		"of a currency without it": {enabled, "XXX", []int64{10_000}, api.BillingSuspended},
	} {
		s := Balance{}
		for _, left := range c.left {
			s.Open = append(s.Open, api.OpenInvoice{Invoice: "inv-1", Number: "INV-000001", DueAt: due, LeftMicros: left})
			s.BalanceMicros -= left
		}
		s.Collection = CollectionOf(c.pays, s.Open, c.currency, due.Add(-14*day))
		terms := api.OrganizationBilling{Mode: api.BillingInvoice, StopAfterDays: api.Setting(5), SuspendAfterDays: api.Setting(10)}
		if got := NextStatus(now, terms, s, api.BillingStatus{State: api.BillingStop}); got.State != c.want {
			t.Errorf("%s: status %+v, want state %s", name, got, c.want)
		}
	}
}
