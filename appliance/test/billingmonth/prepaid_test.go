package billingmonth

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// A machine runs on money paid in advance, for some intervals: with the records of
// the interval in which that is used up the books suspend its customer, the planner
// wants it off, and the agent turns it off, before the next interval ends. The
// customer was warned before. What it has used beyond its money is less than an
// interval costs, and it uses nothing more until it has paid again.
func TestAnEmptyWalletStopsItsMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("lives through an hour, an interval at a time")
	}
	t.Parallel()
	const interval = 5 * time.Minute
	w := newWorld(t, newDisk(t))
	ahead, c := w.customer("ahead", &api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(2_500), SuspendAfterDays: api.Setting(0)})
	pay := func(reference string, micros int64) {
		do(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: ahead}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: micros, Reference: reference}})
	}
	wallet := func() (api.Wallet, int64) {
		a := do(t, w.op.Wallet, ahead)
		return a, a.BalanceMicros - a.UnbilledMicros
	}
	pay("card 1", 6_000) // 15 000 and its disk an hour
	w.pass(interval)
	web := do(t, client.Of[api.Instance](c).Create, machine("web", "small", 0)).Meta.ID
	w.wantPhase(c, web, api.InstanceRunning)

	var each, before int64 // what an interval costs, at most; and what was left
	warned := false
	_, before = wallet()
	for n := 1; before > 0; n++ {
		if n > 12 {
			t.Fatalf("after %d intervals %d micros are left", n, before)
		}
		if got := w.instance(c, web).Status.Phase; got != api.InstanceRunning {
			t.Fatalf("with %d micros left it is %s", before, got)
		}
		w.pass(interval)
		a, left := wallet()
		warned = warned || a.State == api.BillingWarn
		each, before = max(each, before-left), left
	}
	if !warned {
		t.Error("nobody was warned")
	}
	if before <= -each {
		t.Errorf("it used %d micros more than was paid, and an interval costs %d", -before, each)
	}
	org, err := client.Of[api.Organization](w.op).Get(t.Context(), ahead, client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if org.Status.Billing == nil || org.Status.Billing.State != api.BillingSuspended || org.Spec.Suspended == nil {
		t.Fatalf("with %d micros left, after the step of the books, it is %+v", before, org.Status.Billing)
	}
	began := w.Now()
	w.wantPhase(c, web, api.InstanceStopped)
	if took := w.Now().Sub(began); took > interval {
		t.Errorf("it stopped %s after the wallet was empty, want within %s", took, interval)
	}
	if _, err := c.StartInstance(t.Context(), web); err == nil {
		t.Error("it was started with an empty wallet")
	}
	w.pass(interval) // what it used until it was off
	truth := w.truth[web][api.MeterVCPU]
	metered := w.metered()[web][api.MeterVCPU]
	w.pass(24 * time.Hour)
	if more := w.truth[web][api.MeterVCPU] - truth; more != 0 {
		t.Errorf("it ran for %.0f vCPU seconds with an empty wallet", more)
	}
	if more := w.metered()[web][api.MeterVCPU] - metered; more != 0 {
		t.Errorf("%.0f vCPU seconds were metered with an empty wallet", more)
	}
	pay("card 2", 900_000)
	w.pass(interval)
	w.wantPhase(c, web, api.InstanceRunning)
}
