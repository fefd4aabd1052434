package invoicing

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func (w *fixture) organization() api.Organization {
	w.t.Helper()
	o, err := w.Get(w.t.Context(), api.KindOrganization, "org-1")
	if err != nil {
		w.t.Fatal(err)
	}
	org, err := api.Decode[api.Organization](o)
	if err != nil {
		w.t.Fatal(err)
	}
	return org
}

func (w *fixture) pay(id string, micros int64) {
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPayment, ID: id, Organization: "org-1",
		Data: api.Encode(api.PaymentSpec{Type: api.PaymentIn, Currency: "EUR", AmountMicros: micros, Reference: id})})
}

// start creates an object that costs, as the server does.
func (w *fixture) start(id string) error {
	_, err := w.Apply(w.t.Context(), api.Batch{At: march, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Organization: "org-1", Project: "prj-1",
		Uses: api.Amounts{api.QuotaSpend: 1}, Data: []byte(`{}`)}}})
	return err
}

// eventTypes returns the types of the events with a prefix, in order.
func (w *fixture) eventTypes(prefix string) (types []string) {
	w.t.Helper()
	p, err := w.Events(w.t.Context(), api.EventQuery{Organization: "org-1", Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range p.Items {
		if strings.HasPrefix(e.Type, prefix) {
			types = append(types, e.Type)
		}
	}
	return types
}

// The states of a wallet: sufficient, low, used up, suspended, and sufficient again
// after a payment; a suspension by an operator is left unchanged.
func TestWalletsLife(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(1_000_000), SuspendAfterDays: api.Setting(1)})
	j := w.job()
	check := func(at time.Time, state api.BillingState) {
		t.Helper()
		j.Step(t.Context(), at)
		org := w.organization()
		if got := statusOf(org).State; got != state {
			t.Fatalf("state at %s = %s, want %s", at, got, state)
		}
		stopped, suspended := state == api.BillingStop || state == api.BillingSuspended, state == api.BillingSuspended
		if (org.Spec.Restricted != nil) != stopped || (org.Spec.Suspended != nil) != suspended {
			t.Fatalf("state %s: spec %+v, want restricted %t and suspended %t", state, org.Spec, stopped, suspended)
		}
		if err := w.start("ins-" + at.String()); (err != nil) != stopped || err != nil && api.CodeOf(err) != api.CodeQuota {
			t.Fatalf("state %s: start an instance: %v, want it refused: %t", state, err, stopped)
		}
	}
	check(march.Add(time.Hour), api.BillingStop)
	w.pay("pay-1", 2_000_000)
	check(march.Add(2*time.Hour), api.BillingOK)
	w.used(march.Add(time.Hour), api.MeterVCPU, 110*3600) // 1.10
	check(march.Add(3*time.Hour), api.BillingWarn)
	revision := w.Revision()
	j.Step(t.Context(), march.Add(3*time.Hour))
	if w.Revision() != revision {
		t.Errorf("revision after a step without changes = %d, want %d", w.Revision(), revision)
	}
	w.used(march.Add(2*time.Hour), api.MeterVCPU, 100*3600)
	check(march.Add(4*time.Hour), api.BillingStop)
	check(march.Add(27*time.Hour), api.BillingStop)
	check(march.Add(28*time.Hour), api.BillingSuspended)
	w.pay("pay-2", 5_000_000)
	check(march.Add(29*time.Hour), api.BillingOK)
	// The invoice at the end of the month is deducted from the wallet, once.
	check(march.AddDate(0, 1, 1), api.BillingOK)
	wallet, err := j.Billing.Wallet(t.Context(), "org-1", march.AddDate(0, 1, 1))
	if err != nil || wallet.BalanceMicros != 7_000_000-2_100_000 || wallet.UnbilledMicros != 0 {
		t.Errorf("wallet = %+v, %v; want a balance of 4,900,000 and nothing unbilled", wallet, err)
	}
	if got := strings.Join(w.eventTypes("billing."), " "); got != "billing.stop billing.ok billing.warn billing.stop billing.suspended billing.ok" {
		t.Errorf("billing events = %s, want one per change of state", got)
	}
	if got := w.eventTypes("invoice."); len(got) != 1 {
		t.Errorf("invoice events = %s, want one", got)
	}
	org := w.organization()
	org.Spec.Suspended = &api.OrganizationSuspension{Reason: "abuse", By: api.RoleOperator}
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Expect: api.AnyRevision, Data: api.Encode(org.Spec), Limits: org.Spec.Limits()})
	j.Step(t.Context(), march.AddDate(0, 1, 2))
	if s := w.organization().Spec.Suspended; s == nil || s.By != api.RoleOperator {
		t.Errorf("suspension = %+v, want the operator's", s)
	}
}

// Five clients start instances while a cap takes effect: no request that comes after it
// in the store's order succeeds, and the cap ends with the month.
func TestNothingPassesACap(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice, TimeZone: "Europe/Berlin"})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-1", Name: "web", Organization: "org-1", Data: []byte(`{}`)},
		api.Command{Op: api.OpPutSpec, Kind: api.KindBudget, ID: "bud-1", Name: "web", Organization: "org-1",
			Data: api.Encode(api.BudgetSpec{Project: "prj-1", AmountMicros: 10_000, AlertPercents: []int64{50, 100}, Cap: api.CapStop})},
		api.Command{Op: api.OpPutSpec, Kind: api.KindBudget, ID: "bud-2", Name: "all", Organization: "org-1",
			Data: api.Encode(api.BudgetSpec{AmountMicros: 20_000, AlertPercents: []int64{50}, Cap: api.CapSuspend})})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	var wg sync.WaitGroup
	var capped atomic.Bool
	for i := range 5 {
		wg.Go(func() {
			for n := range 200 {
				before := capped.Load()
				if err := w.start(fmt.Sprintf("ins-%d-%d", i, n)); err == nil && before {
					t.Error("an instance started after the cap, want it refused")
				}
			}
		})
	}
	w.job().Step(t.Context(), march.Add(2*time.Hour))
	capped.Store(true)
	wg.Wait()
	if err := w.start("ins-late"); api.CodeOf(err) != api.CodeQuota {
		t.Errorf("start after the cap: %v, want code %s", err, api.CodeQuota)
	}
	if org := w.organization(); org.Spec.Restricted != nil || org.Spec.Suspended != nil {
		t.Errorf("organization with one capped project = %+v, want it neither restricted nor suspended", org.Spec)
	}
	w.used(march.Add(3*time.Hour), api.MeterVCPU, 3600)
	w.job().Step(t.Context(), march.Add(4*time.Hour))
	if org := w.organization(); org.Spec.Suspended == nil || org.Spec.Suspended.By != api.RoleBilling {
		t.Errorf("organization with a used-up budget = %+v, want it suspended by billing", org.Spec)
	}
	o, err := w.Get(t.Context(), api.KindBudget, "bud-1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := api.Decode[api.Budget](o)
	if err != nil || len(b.Status.Alerts) != 2 || b.Status.CappedAt == nil || b.Status.SpentMicros != 20_000 || b.Status.Month != "2026-03" {
		t.Errorf("status of budget bud-1 = %+v, %v; want two alerts, capped, 20,000 spent", b.Status, err)
	}
	if got := w.eventTypes("budget.alert"); len(got) != 2 { // one for 50 and 100 %, the other for 50 %
		t.Errorf("budget events = %s, want two", got)
	}
	w.job().Step(t.Context(), march.AddDate(0, 1, 0)) // already April in Berlin
	if err := w.start("ins-april"); err != nil {
		t.Errorf("start in the next month: %v", err)
	}
}

// With a wallet of 0.50 and a running machine, the organization is warned first, and
// suspended with the records of the metering interval in which the wallet is used up.
func TestAnEmptyWalletStopsAtOnce(t *testing.T) {
	const interval, each = 5 * time.Minute, 60_000 // micros that an interval costs
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingPrepaid, WarnMicros: api.Setting(200_000), SuspendAfterDays: api.Setting(0)})
	w.pay("pay-1", 500_000)
	j, now := w.job(), march.Add(time.Hour)
	j.Step(t.Context(), now)
	for n := 1; statusOf(w.organization()).State != api.BillingSuspended; n++ {
		if n > 9 {
			t.Fatalf("billing status after %d intervals = %+v, want suspended", n-1, w.organization().Status.Billing)
		}
		now = now.Add(interval)
		w.used(now, api.MeterVCPU, 6*3600)
		j.Step(t.Context(), now.Add(time.Minute))
	}
	wallet, err := j.Billing.Wallet(t.Context(), "org-1", now.Add(time.Minute))
	if left := wallet.BalanceMicros - wallet.UnbilledMicros; err != nil || left > 0 || left <= -each {
		t.Errorf("left when suspended = %d, %v; want less than the %d of an interval below 0", left, err, each)
	}
	if org := w.organization(); org.Spec.Suspended == nil || org.Spec.Restricted == nil || w.start("ins-late") == nil {
		t.Errorf("organization with an empty wallet = %+v, want it restricted and suspended, and a start refused", org.Spec)
	}
	if got := strings.Join(w.eventTypes("billing."), " "); got != "billing.warn billing.suspended" {
		t.Errorf("billing events = %s, want billing.warn billing.suspended", got)
	}
}
