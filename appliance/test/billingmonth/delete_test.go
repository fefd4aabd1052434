package billingmonth

import (
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// Usage is always invoiced: the usage of a deleted project belongs to its organization, and
// neither an organization nor its billing terms can be deleted before its usage is invoiced,
// whether it is prepaid or invoiced.
func TestUseIsInvoicedBeforeItGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a month")
	}
	t.Parallel()
	w := newWorld(t, newDisk(t))
	acme, c := w.customer("acme", &api.OrganizationBilling{Mode: api.BillingInvoice})
	ahead, d := w.customer("ahead", &api.OrganizationBilling{Mode: api.BillingPrepaid})
	must(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: ahead}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 900_000_000, Reference: "card 1"}})
	w.until(1, 9, 0)
	train := must(t, client.Of[api.Instance](c).Create, machine("train", "small", 0)).Meta.ID
	web := must(t, client.Of[api.Instance](d).Create, machine("web", "small", 0)).Meta.ID
	w.wantPhase(c, train, api.InstanceRunning)
	w.wantPhase(d, web, api.InstanceRunning)
	w.until(1, 12, 0)
	must(t, client.Of[api.Instance](c).Delete, train)
	must(t, client.Of[api.Instance](d).Delete, web)
	for range 20 { // deletion takes several steps
		w.pass(time.Second)
	}
	if left := w.list(api.KindInstance); len(left) > 0 {
		t.Fatalf("%d instances are left after their deletion, want none; the first: %s, status %s, finalizers %s", len(left), left[0].Meta.ID, left[0].Status, left[0].Meta.Finalizers)
	}
	drop := func(org string) error {
		for k, err := range client.Of[api.APIKey](w.op).All(t.Context(), client.Query{Organization: org}) {
			if err != nil {
				t.Fatal(err)
			}
			must(t, client.Of[api.APIKey](w.op).Delete, k.Meta.ID)
		}
		for p, err := range client.Of[api.Project](w.op).All(t.Context(), client.Query{Organization: org}) {
			if err != nil {
				t.Fatal(err)
			}
			must(t, client.Of[api.Project](w.op).Delete, p.Meta.ID)
		}
		w.settle()
		_, err := client.Of[api.Organization](w.op).Delete(t.Context(), org)
		return err
	}
	termsOff := func(org string) error {
		o, err := client.Of[api.Organization](w.op).Get(t.Context(), org, client.Query{})
		if err != nil {
			t.Fatal(err)
		}
		o.Spec.Billing = nil
		_, err = client.Of[api.Organization](w.op).Update(t.Context(), org, o)
		return err
	}
	notInvoiced := func(err error) bool {
		return api.CodeOf(err) == api.CodeInUse && strings.Contains(err.Error(), "is not invoiced yet")
	}
	for _, org := range []string{acme, ahead} {
		if err := drop(org); !notInvoiced(err) {
			t.Fatalf("deletion of organization %s with usage that is not invoiced: error %v, want InUse", org, err)
		}
		if err := termsOff(org); !notInvoiced(err) {
			t.Fatalf("removal of the billing terms of organization %s with usage that is not invoiced: error %v, want InUse", org, err)
		}
	}
	w.until(32, 6, 0)
	if invoices := w.list(api.KindInvoice); len(invoices) != 2 {
		t.Fatalf("%d invoices, want 2: one of each organization", len(invoices))
	}
	for _, o := range w.list(api.KindInvoice) {
		inv, err := api.Decode[api.Invoice](o)
		if err != nil || inv.Spec.TotalMicros <= 0 || o.Meta.Organization != acme && o.Meta.Organization != ahead {
			t.Errorf("invoice %+v (error %v), want a positive total for %s or %s", inv, err, acme, ahead)
		}
	}
	for _, org := range []string{acme, ahead} {
		if err := drop(org); api.CodeOf(err) != api.CodeInUse || notInvoiced(err) {
			t.Errorf("deletion of organization %s with an invoice: error %v, want another InUse error", org, err)
		}
		if err := termsOff(org); err != nil {
			t.Errorf("removal of the billing terms of organization %s, whose usage is invoiced: %v", org, err)
		}
	}
}
