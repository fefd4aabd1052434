package server_test

import (
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestPayments covers payments that are sent twice, concurrently, or with another
// amount, invalid amounts and currencies, and callers without the right to record any.
func TestPayments(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	pay := func(as *client.API, s api.PaymentSpec) (api.Payment, error) {
		return client.Of[api.Payment](as).Create(ctx, api.Payment{Meta: api.Meta{Organization: "acme"}, Spec: s})
	}
	good := api.PaymentSpec{Currency: "EUR", AmountMicros: 5_000_000, Reference: "bank-1"}
	var wg sync.WaitGroup
	ids := make([]string, 5)
	for i := range ids {
		wg.Go(func() {
			p, err := pay(w.op, good)
			if err != nil {
				t.Error(err)
			}
			ids[i] = p.Meta.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("IDs of one payment = %v, want a single ID", ids)
		}
	}
	if n := count(t, client.Of[api.Payment](w.op)); n != 1 {
		t.Errorf("%d payments are recorded, want 1", n)
	}
	for name, c := range map[string]struct {
		change func(*api.PaymentSpec)
		code   api.Code
		field  string
	}{
		"another amount":   {func(s *api.PaymentSpec) { s.AmountMicros++ }, api.CodeExists, "spec.reference"},
		"another type":     {func(s *api.PaymentSpec) { s.Type = api.PaymentOut }, api.CodeExists, "spec.reference"},
		"negative":         {func(s *api.PaymentSpec) { s.AmountMicros = -1 }, api.CodeInvalid, "spec.amountMicros"},
		"nothing":          {func(s *api.PaymentSpec) { s.AmountMicros = 0 }, api.CodeInvalid, "spec.amountMicros"},
		"absurd":           {func(s *api.PaymentSpec) { s.AmountMicros = 1 << 62 }, api.CodeInvalid, "spec.amountMicros"},
		"another currency": {func(s *api.PaymentSpec) { s.Currency = "USD"; s.Reference = "bank-2" }, api.CodeInvalid, "spec.currency"},
		"no currency":      {func(s *api.PaymentSpec) { s.Currency = "eur" }, api.CodeInvalid, "spec.currency"},
		"no reference":     {func(s *api.PaymentSpec) { s.Reference = "" }, api.CodeInvalid, "spec.reference"},
		"control":          {func(s *api.PaymentSpec) { s.Note = "a\nb" }, api.CodeInvalid, "spec.note"},
	} {
		s := good
		c.change(&s)
		_, err := pay(w.op, s)
		t.Log(name)
		wantErr(t, err, c.code, c.field)
	}
	_, err := pay(w.as(api.RoleReseller, w.acme, ""), api.PaymentSpec{Currency: "EUR", AmountMicros: 1, Reference: "own"})
	wantErr(t, err, api.CodeForbidden, "meta.organization")
	_, err = client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "moon"}, Spec: api.OrganizationSpec{Billing: &api.OrganizationBilling{Mode: api.BillingPrepaid, TimeZone: "Moon/Base"}}})
	wantErr(t, err, api.CodeInvalid, "spec.billing.timeZone")
}
