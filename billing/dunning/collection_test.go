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
		s := Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Invoice: "inv-1", Number: "INV-000001", DueAt: now.Add(-c.due), LeftMicros: 5}},
			Collection: CollectionOf(c.pays, "inv-1", now.Add(-c.issued))}
		if got := NextStatus(now.Add(c.after), terms, s, api.BillingStatus{State: c.was}); got.State != c.want {
			t.Errorf("%s: status %+v, want state %s", name, got, c.want)
		}
	}
	terms.DeleteAfterDays = 1
	s := Balance{BalanceMicros: -5, Open: []api.OpenInvoice{{Invoice: "inv-1", DueAt: now.Add(-20 * day), LeftMicros: 5}}, Collection: CollectionOf(charging, "inv-1", now)}
	if got := NextStatus(now, terms, s, api.BillingStatus{State: api.BillingSuspended}); got.DeleteWarnedAt != nil || got.State != api.BillingSuspended {
		t.Errorf("status during a charge = %+v, want no announcement of the deletion", got)
	}
	if got := NextStatus(now.Add(day), terms, s, api.BillingStatus{State: api.BillingSuspended}); got.DeleteWarnedAt == nil {
		t.Errorf("status after the charge = %+v, want the deletion announced", got)
	}
}
