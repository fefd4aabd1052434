package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestRefundsAreTheSellers checks who may refund a payment: the operator and the reseller
// of the customer, but not the customer, and no other reseller.
func TestRefundsAreTheSellers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	seller := must(t, ret(client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "seller"}}))).v
	customer := must(t, ret(client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "customer"}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(seller.Meta.ID)}}))).v
	reseller, admin := w.as(api.RoleReseller, seller.Meta.ID, ""), w.as(api.RoleAdmin, customer.Meta.ID, "")
	stranger := w.as(api.RoleReseller, w.acme, "")
	pay := must(t, ret(client.Of[api.Payment](reseller).Create(ctx, api.Payment{Meta: api.Meta{Organization: customer.Meta.ID}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 5, Reference: "bank-1"}}))).v
	refund := func(as *client.API, reference string) (api.Refund, error) {
		return client.Of[api.Refund](as).Create(ctx, api.Refund{Spec: api.RefundSpec{Payment: api.PaymentID(pay.Meta.ID), AmountMicros: 1, Reason: "goodwill", Reference: reference}})
	}
	_, err := refund(admin, "bank-2")
	wantErr(t, err, api.CodeForbidden, "")
	_, err = refund(stranger, "bank-2")
	wantErr(t, err, api.CodeInvalid, "spec.payment") // it does not exist for them
	must(t, ret(refund(reseller, "bank-2")))
	must(t, ret(refund(w.op, "bank-3")))
	for name, as := range map[string]*client.API{"customer": admin, "reseller": reseller} {
		if n := count(t, client.Of[api.Refund](as)); n != 2 {
			t.Errorf("%s sees %d refunds, want 2", name, n)
		}
	}
	if n := count(t, client.Of[api.Refund](stranger)); n != 0 {
		t.Errorf("another reseller sees %d refunds, want 0", n)
	}
}
