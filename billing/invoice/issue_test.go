package invoice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// TestSums checks that a long invoice has one line per project and price; different
// prices, and different customers of a reseller, stay separate.
func TestSums(t *testing.T) {
	line := func(resource, project, model string, micros int64) api.InvoiceLine {
		return api.InvoiceLine{ID: resource, Kind: api.LineUsage, Project: api.ProjectID(project), Resource: resource, Meter: api.MeterGPU,
			Per: 1, PriceMicros: 7, Where: api.PriceSelector{Model: model}, AmountMicros: micros}
	}
	type sum struct {
		Project, Resource, Model string
		Micros                   int64
	}
	var got []sum
	for _, l := range sums([]api.InvoiceLine{line("ins-1", "prj-1", "", 1), line("ins-2", "prj-1", "", 2), line("ins-3", "prj-1", "NVIDIA L4", 4),
		line("ins-4", "prj-2", "", 8), line("org-a", "", "", 16), line("org-b", "", "", 32), line("ins-5", "prj-1", "NVIDIA L4", 64)}) {
		got = append(got, sum{string(l.Project), l.Resource, l.Where.Model, l.AmountMicros})
	}
	want := []sum{{"prj-1", "", "", 3}, {"prj-1", "", "NVIDIA L4", 68}, {"prj-2", "", "", 8}, {"", "org-a", "", 16}, {"", "org-b", "", 32}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("sums: mismatch (-want +got):\n%s", d)
	}
}

// TestSellerOnInvoices checks that the seller on an invoice is that of the price book if
// whoever sells has made it, and otherwise the reseller.
func TestSellerOnInvoices(t *testing.T) {
	operator, stated := api.Party{Name: "Operator Ltd"}, api.Party{Name: "Shop Ltd", TaxID: "DE2"}
	shop := api.Organization{Meta: api.Meta{ID: "org-shop", Name: "shop"}}
	billed := shop
	billed.Spec.DisplayName = "Shop"
	billed.Spec.Billing = &api.OrganizationBilling{Address: []string{"1 Road"}, TaxID: "DE1"}
	for what, c := range map[string]struct {
		seller api.Organization
		owner  string // of the price book
		stated api.Party
		want   api.Party
	}{
		"the operator":                          {api.Organization{}, "", operator, operator},
		"a reseller by its own price book":      {billed, "org-shop", stated, stated},
		"a reseller by the operator's":          {billed, "", operator, api.Party{Name: "Shop", Address: []string{"1 Road"}, TaxID: "DE1"}},
		"a reseller by a book without a seller": {billed, "org-shop", api.Party{}, api.Party{Name: "Shop", Address: []string{"1 Road"}, TaxID: "DE1"}},
		"a reseller without billing terms":      {shop, "", operator, api.Party{Name: "shop"}},
	} {
		org := api.Organization{Meta: api.Meta{ID: "org-customer", Name: "customer"}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(c.seller.Meta.ID), Billing: &api.OrganizationBilling{}}}
		book := api.PriceBook{Meta: api.Meta{ID: "pb-1", Organization: c.owner}, Spec: api.PriceBookSpec{Currency: "EUR", Seller: c.stated}}
		_, spec, err := Issue(Draft{Organization: org, Seller: c.seller, Book: book, Prices: pricebook.Always(book.Spec)}, api.SeriesSpec{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, spec.Prices.Seller); d != "" {
			t.Errorf("seller on an invoice by %s: mismatch (-want +got):\n%s", what, d)
		}
	}
}
