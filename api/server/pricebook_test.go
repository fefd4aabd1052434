package server_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// Prices, discounts and the names of price books are for those who pay by them, and
// for the resellers who may give them to their customers: whichever way they ask.
func TestPriceBooksAreSeenByThoseWhoPay(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	ids := map[string]string{}
	for _, name := range []string{api.DefaultPriceBook, "for-acme", "for-r1", "for-shops", "for-r2"} {
		ids[name] = must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: name}, Spec: api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}}}))).v.Meta.ID
	}
	acme := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, w.acme, client.Query{}))).v
	acme.Spec.PriceBook = "for-acme"
	must(t, ret(client.Of[api.Organization](w.op).Update(ctx, w.acme, acme)))
	r1 := organization(t, w.op, "r1", api.OrganizationSpec{PriceBook: "for-r1", Offers: []api.PriceBookID{"for-shops"}})
	seller := w.as(api.RoleReseller, r1.Meta.ID, "")
	shop := organization(t, seller, "shop", api.OrganizationSpec{PriceBook: "for-shops"})
	plain := organization(t, seller, "plain", api.OrganizationSpec{})

	for name, c := range map[string]struct {
		as   *client.API
		sees []string
	}{
		"operator":                    {w.op, slices.Collect(maps.Keys(ids))},
		"admin":                       {w.as(api.RoleAdmin, w.acme, ""), []string{"for-acme"}},
		"member":                      {w.as(api.RoleMember, w.acme, w.web), []string{"for-acme"}},
		"billing":                     {w.as(api.RoleBilling, w.acme, ""), []string{"for-acme"}},
		"who pays by the default":     {w.as(api.RoleAdmin, w.other, ""), []string{api.DefaultPriceBook}},
		"reseller":                    {seller, []string{api.DefaultPriceBook, "for-r1", "for-shops"}},
		"its customer":                {w.as(api.RoleAdmin, shop.Meta.ID, ""), []string{"for-shops"}},
		"its customer by the default": {w.as(api.RoleAdmin, plain.Meta.ID, ""), []string{api.DefaultPriceBook}},
	} {
		slices.Sort(c.sees)
		same := func(how string, got []string) {
			t.Helper()
			if slices.Sort(got); !slices.Equal(got, c.sees) {
				t.Errorf("%s sees by %s %v, want %v", name, how, got, c.sees)
			}
		}
		var listed, searched, got, watched []string
		for b, err := range client.Of[api.PriceBook](c.as).All(ctx, client.Query{}) {
			listed = append(listed, must(t, b, err).Meta.Name)
		}
		for _, search := range []string{"for-", api.DefaultPriceBook} {
			for b, err := range client.Of[api.PriceBook](c.as).All(ctx, client.Query{Search: search}) {
				searched = append(searched, must(t, b, err).Meta.Name)
			}
		}
		for book, id := range ids {
			_, byID := client.Of[api.PriceBook](c.as).Get(ctx, id, client.Query{})
			_, byName := client.Of[api.PriceBook](c.as).Get(ctx, book, client.Query{})
			if (byID == nil) != (byName == nil) || byID != nil && (api.CodeOf(byID) != api.CodeNotFound || api.CodeOf(byName) != api.CodeNotFound) {
				t.Errorf("%s asks for %s: %v and %v", name, book, byID, byName)
			}
			if byID == nil {
				got = append(got, book)
			}
		}
		same("list", listed)
		same("search", searched)
		same("get", got)
		if name == "billing" { // may not watch
			continue
		}
		for e, err := range c.as.Watch(ctx, 0, api.KindPriceBook) {
			if must(t, e, err); e.Type == api.EventSync {
				break
			}
			watched = append(watched, e.Object.Meta.Name)
		}
		same("watch", watched)
	}

	// What a reseller does not see it cannot give; what an operator has given its
	// customer stays.
	_, err := client.Of[api.Organization](seller).Create(ctx, api.Organization{Meta: api.Meta{Name: "cheap"}, Spec: api.OrganizationSpec{PriceBook: api.PriceBookID(ids["for-acme"])}})
	wantErr(t, err, api.CodeInvalid, "spec.priceBook")
	shop = must(t, ret(client.Of[api.Organization](w.op).Get(ctx, shop.Meta.ID, client.Query{}))).v
	shop.Spec.PriceBook = "for-r2"
	must(t, ret(client.Of[api.Organization](w.op).Update(ctx, shop.Meta.ID, shop)))
	shop = must(t, ret(client.Of[api.Organization](seller).Get(ctx, shop.Meta.ID, client.Query{}))).v
	shop.Spec.DisplayName = "The shop"
	must(t, ret(client.Of[api.Organization](seller).Update(ctx, shop.Meta.ID, shop)))
	shop = must(t, ret(client.Of[api.Organization](seller).Get(ctx, shop.Meta.ID, client.Query{}))).v
	shop.Spec.Offers = []api.PriceBookID{api.PriceBookID(ids["for-acme"])}
	_, err = client.Of[api.Organization](seller).Update(ctx, shop.Meta.ID, shop)
	wantErr(t, err, api.CodeForbidden, "spec.offers")
	_, err = client.Of[api.PriceBook](w.op).Delete(ctx, ids["for-shops"])
	wantErr(t, err, api.CodeInUse, "")
}
