package billingmonth

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// A prepaid instance runs for several intervals. After the interval in which the wallet becomes
// empty, invoicing suspends the organization, the planner requests its instances to be stopped,
// and the agent stops them, all before the next interval ends. The customer is warned before.
// The usage beyond the wallet costs less than one interval, and there is none until the next
// payment.
func TestAnEmptyWalletStopsItsMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates an hour, an interval at a time")
	}
	t.Parallel()
	const interval = 5 * time.Minute
	w := newWorld(t, newDisk(t))
	ahead, c := w.customer("ahead", &api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(2_500), SuspendAfterDays: api.Setting(0)})
	pay := func(reference string, micros int64) {
		must(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: ahead}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: micros, Reference: reference}})
	}
	wallet := func() (api.Wallet, int64) {
		a := must(t, w.op.Wallet, ahead)
		return a, a.BalanceMicros - a.UnbilledMicros
	}
	pay("card 1", 6_000) // the instance costs 15 000 an hour, and its disk
	w.pass(interval)
	web := must(t, client.Of[api.Instance](c).Create, machine("web", "small", 0)).Meta.ID
	w.wantPhase(c, web, api.InstanceRunning)

	var each, before int64 // the highest cost of an interval, and the balance before it
	warned := false
	_, before = wallet()
	for n := 1; before > 0; n++ {
		if n > 12 {
			t.Fatalf("after %d intervals %d micros are left, want an empty wallet", n, before)
		}
		if got := w.instance(c, web).Status.Phase; got != api.InstanceRunning {
			t.Fatalf("instance with %d micros left in the wallet is %s, want %s", before, got, api.InstanceRunning)
		}
		w.pass(interval)
		a, left := wallet()
		warned = warned || a.State == api.BillingWarn
		each, before = max(each, before-left), left
	}
	if !warned {
		t.Error("wallet never had the state warn before it was empty")
	}
	if before <= -each {
		t.Errorf("usage exceeds the payment by %d micros, want less than the %d of an interval", -before, each)
	}
	org, err := client.Of[api.Organization](w.op).Get(t.Context(), ahead, client.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if org.Status.Billing == nil || org.Status.Billing.State != api.BillingSuspended || org.Spec.Suspended == nil {
		t.Fatalf("organization with %d micros left: billing %+v, suspended %+v, want it suspended", before, org.Status.Billing, org.Spec.Suspended)
	}
	began := w.Now()
	w.wantPhase(c, web, api.InstanceStopped)
	if took := w.Now().Sub(began); took > interval {
		t.Errorf("instance stopped %s after the wallet was empty, want within %s", took, interval)
	}
	if _, err := c.StartInstance(t.Context(), web); err == nil {
		t.Error("start of an instance with an empty wallet succeeded, want an error")
	}
	w.pass(interval) // meter the usage until it was stopped
	truth := w.truth[web][api.MeterVCPU]
	metered := w.metered()[web][api.MeterVCPU]
	w.pass(24 * time.Hour)
	if more := w.truth[web][api.MeterVCPU] - truth; more != 0 {
		t.Errorf("instance ran for %.0f vCPU seconds with an empty wallet, want 0", more)
	}
	if more := w.metered()[web][api.MeterVCPU] - metered; more != 0 {
		t.Errorf("%.0f vCPU seconds were metered with an empty wallet, want 0", more)
	}
	pay("card 2", 900_000)
	w.pass(interval)
	w.wantPhase(c, web, api.InstanceRunning)
}
