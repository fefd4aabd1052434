package server_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestQuotePriceBook checks who may quote by which price book, and which requests are
// refused.
func TestQuotePriceBook(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	spec := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}}
	create := func(name string) {
		t.Helper()
		must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: name}, Spec: spec})))
	}
	create("list")
	create("secret")
	got, err := w.op.QuotePriceBook(ctx, "list", api.PriceQuoteRequest{Flavor: "small", Hours: 10, RootBytes: 1 << 30})
	if err != nil || got.Current.TotalMicros != 10_000_000 || got.Changed != nil || got.Vcpus != 2 || got.RootBytes != 1<<30 || got.Currency != "EUR" {
		t.Errorf("quote = %+v, %v, want 10 EUR for 2 vCPUs and no changed prices", got, err)
	}
	if got, err = w.op.QuotePriceBook(ctx, "list", api.PriceQuoteRequest{Hours: 10, Prices: &spec}); err != nil || got.Changed == nil || got.Changed.TotalMicros != 20_000_000 {
		t.Errorf("quote with changed prices = %+v, %v, want 20 EUR by them", got, err)
	}
	r1 := organization(t, w.op, "r1", api.OrganizationSpec{PriceBook: "list"})
	seller := w.as(api.RoleReseller, r1.Meta.ID, "")
	if _, err := seller.QuotePriceBook(ctx, "list", api.PriceQuoteRequest{}); err != nil {
		t.Errorf("quote by the price book that a reseller pays by: %v", err)
	}
	_, err = seller.QuotePriceBook(ctx, "secret", api.PriceQuoteRequest{})
	wantErr(t, err, api.CodeNotFound, "")
	_, err = w.as(api.RoleAdmin, w.acme, "").QuotePriceBook(ctx, "list", api.PriceQuoteRequest{})
	wantErr(t, err, api.CodeForbidden, "")

	for _, c := range []struct {
		field string
		q     api.PriceQuoteRequest
	}{
		{"hours", api.PriceQuoteRequest{Hours: 721}},
		{"hours", api.PriceQuoteRequest{Hours: -1}},
		{"gpuPercent", api.PriceQuoteRequest{GpuPercent: 101}},
		{"sharePercent", api.PriceQuoteRequest{SharePercent: 101}},
		{"vramBytes", api.PriceQuoteRequest{VramBytes: -1}},
		{"rootBytes", api.PriceQuoteRequest{RootBytes: -1}},
		{"tier", api.PriceQuoteRequest{Tier: "golden"}},
		{"flavor", api.PriceQuoteRequest{Flavor: "none"}},
		{"spec.currency", api.PriceQuoteRequest{Prices: &api.PriceBookSpec{Currency: "USD", Prices: []api.Price{}}}},
		{"spec.minimumMicros", api.PriceQuoteRequest{Prices: &api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}, MinimumMicros: -1}}},
	} {
		_, err := w.op.QuotePriceBook(ctx, "list", c.q)
		wantErr(t, err, api.CodeInvalid, c.field)
	}
}

// TestGetCapacity checks that only operators read the capacity.
func TestGetCapacity(t *testing.T) {
	w := newWorld(t)
	if got, err := w.op.Capacity(t.Context()); err != nil || len(got.Gpus) != 2 || got.Gpus[0].FullInDays != 20 {
		t.Errorf("capacity = %+v, %v, want two models, the first full in 20 days", got, err)
	}
	_, err := w.as(api.RoleReseller, w.acme, "").Capacity(t.Context())
	wantErr(t, err, api.CodeForbidden, "")
}
