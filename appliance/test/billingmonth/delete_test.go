package billingmonth

import (
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// Nothing that was used goes without an invoice: a project's use is its
// organization's when the project is gone, and an organization stays until its use
// was invoiced, and so do the terms by which it pays, whether it pays before or
// after.
func TestUseIsInvoicedBeforeItGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("lives through a month")
	}
	t.Parallel()
	w := newWorld(t, newDisk(t))
	acme, c := w.customer("acme", &api.OrganizationBilling{Mode: api.BillingInvoice})
	ahead, d := w.customer("ahead", &api.OrganizationBilling{Mode: api.BillingPrepaid})
	do(t, client.Of[api.Payment](w.op).Create, api.Payment{Meta: api.Meta{Organization: ahead}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 900_000_000, Reference: "card 1"}})
	w.until(1, 9, 0)
	train := do(t, client.Of[api.Instance](c).Create, machine("train", "small", 0)).Meta.ID
	web := do(t, client.Of[api.Instance](d).Create, machine("web", "small", 0)).Meta.ID
	w.wantPhase(c, train, api.InstanceRunning)
	w.wantPhase(d, web, api.InstanceRunning)
	w.until(1, 12, 0)
	do(t, client.Of[api.Instance](c).Delete, train)
	do(t, client.Of[api.Instance](d).Delete, web)
	for range 20 { // a step each
		w.pass(time.Second)
	}
	if left := w.list(api.KindInstance); len(left) > 0 {
		t.Fatalf("%s is not gone: %s %s", left[0].Meta.ID, left[0].Status, left[0].Meta.Finalizers)
	}
	drop := func(org string) error {
		for k, err := range client.Of[api.APIKey](w.op).All(t.Context(), client.Query{Organization: org}) {
			if err != nil {
				t.Fatal(err)
			}
			do(t, client.Of[api.APIKey](w.op).Delete, k.Meta.ID)
		}
		for p, err := range client.Of[api.Project](w.op).All(t.Context(), client.Query{Organization: org}) {
			if err != nil {
				t.Fatal(err)
			}
			do(t, client.Of[api.Project](w.op).Delete, p.Meta.ID)
		}
		w.turn()
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
			t.Fatalf("an organization with use that was not invoiced is deleted: %v", err)
		}
		if err := termsOff(org); !notInvoiced(err) {
			t.Fatalf("an organization with use that was not invoiced pays no more: %v", err)
		}
	}
	w.until(32, 6, 0)
	if invoices := w.list(api.KindInvoice); len(invoices) != 2 {
		t.Fatalf("%d invoices, want one of each organization", len(invoices))
	}
	for _, o := range w.list(api.KindInvoice) {
		inv, err := api.Decode[api.Invoice](o)
		if err != nil || inv.Spec.TotalMicros <= 0 || o.Meta.Organization != acme && o.Meta.Organization != ahead {
			t.Errorf("%+v, %v", inv, err)
		}
	}
	for _, org := range []string{acme, ahead} {
		if err := drop(org); api.CodeOf(err) != api.CodeInUse || notInvoiced(err) {
			t.Errorf("an organization with an invoice is deleted: %v", err)
		}
		if err := termsOff(org); err != nil {
			t.Errorf("the terms of an organization that owes no invoice: %v", err)
		}
	}
}
