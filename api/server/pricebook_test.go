package server_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestPriceBookVisibility checks that price books are visible, by every
// operation, only to those who pay by them and to the resellers who may assign them to
// customers.
func TestPriceBookVisibility(t *testing.T) {
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
				t.Errorf("price books that %s sees by %s = %v, want %v", name, how, got, c.sees)
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
				t.Errorf("%s gets price book %s by ID: %v, and by name: %v; want the same result", name, book, byID, byName)
			}
			if byID == nil {
				got = append(got, book)
			}
		}
		same("list", listed)
		same("search", searched)
		same("get", got)
		if name == "billing" { // not allowed to watch
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

	// A reseller cannot assign a price book that it cannot see; one assigned by an
	// operator is kept.
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

// TestPricesChangeFromATime checks that a change of a price book, or of its assignment,
// takes effect at the start of an hour that has not begun, and that a time in the past
// is refused.
func TestPricesChangeFromATime(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	next := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	spec := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: 1, Per: 3600}}, EffectiveFrom: next, Version: 7}
	b := must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: api.DefaultPriceBook}, Spec: spec}))).v
	if b.Spec.Version != 1 || !b.Spec.EffectiveFrom.IsZero() {
		t.Errorf("new price book has version %d from %s, want 1 without a start", b.Spec.Version, b.Spec.EffectiveFrom)
	}
	same := must(t, ret(client.Of[api.PriceBook](w.op).Update(ctx, b.Meta.ID, b))).v
	if same.Spec.Version != 1 {
		t.Errorf("version after an update with the same prices = %d, want 1", same.Spec.Version)
	}
	b = same
	b.Spec.Prices[0].PriceMicros = 2
	b.Spec.EffectiveFrom = next.Add(-48 * time.Hour)
	_, err := client.Of[api.PriceBook](w.op).Update(ctx, b.Meta.ID, b)
	wantErr(t, err, api.CodeInvalid, "spec.effectiveFrom")
	b.Spec.EffectiveFrom = next.AddDate(0, 1, 0).Add(time.Minute)
	_, err = client.Of[api.PriceBook](w.op).Update(ctx, b.Meta.ID, b)
	wantErr(t, err, api.CodeInvalid, "spec.effectiveFrom")
	b.Spec.EffectiveFrom = next.AddDate(0, 1, 0)
	b = must(t, ret(client.Of[api.PriceBook](w.op).Update(ctx, b.Meta.ID, b))).v
	if b.Spec.Version != 2 || !b.Spec.EffectiveFrom.Equal(next.AddDate(0, 1, 0)) {
		t.Errorf("changed price book has version %d from %s, want 2 from %s", b.Spec.Version, b.Spec.EffectiveFrom, next.AddDate(0, 1, 0))
	}

	// Organizations that name no price book use this one.
	_, err = client.Of[api.PriceBook](w.op).Delete(ctx, b.Meta.ID)
	wantErr(t, err, api.CodeInUse, "")
	renamed := b
	renamed.Meta.Name = "another"
	_, err = client.Of[api.PriceBook](w.op).Update(ctx, b.Meta.ID, renamed)
	wantErr(t, err, api.CodeInUse, "")

	spec.Prices[0].PriceMicros = 3
	must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "cheap"}, Spec: spec})))
	acme := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, w.acme, client.Query{}))).v
	acme.Spec.PriceBook, acme.Spec.PriceBookFrom = "cheap", next.Add(-2*time.Hour)
	_, err = client.Of[api.Organization](w.op).Update(ctx, w.acme, acme)
	wantErr(t, err, api.CodeInvalid, "spec.priceBookFrom")
	acme.Spec.PriceBookFrom = time.Time{}
	acme = must(t, ret(client.Of[api.Organization](w.op).Update(ctx, w.acme, acme))).v
	if s := acme.Spec; s.PriceBookFrom.Before(next) || len(s.PriceBookHistory) != 2 || s.PriceBookHistory[0].PriceBook != "" || s.PriceBookHistory[1].PriceBook != s.PriceBook {
		t.Errorf("price books of the organization = %+v, want the default one before %s", s.PriceBookHistory, next)
	}
	acme.Spec.PriceBookHistory, acme.Spec.DisplayName = nil, "Acme"
	acme = must(t, ret(client.Of[api.Organization](w.op).Update(ctx, w.acme, acme))).v
	if len(acme.Spec.PriceBookHistory) != 2 {
		t.Errorf("price book history after it was left out = %+v, want it unchanged", acme.Spec.PriceBookHistory)
	}
}

// TestListPriceBookVersions checks that versions are listed in pages, the newest first,
// and that a change that has not taken effect is replaced by the next one.
func TestListPriceBookVersions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	spec := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU, Per: 3600, PriceMicros: 1}}}
	book := must(t, ret(client.Of[api.PriceBook](w.op).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "dear"}, Spec: spec}))).v
	for _, price := range []int64{2, 3} {
		book.Spec.Prices = []api.Price{{Meter: api.MeterVCPU, Per: 3600, PriceMicros: price}}
		book = must(t, ret(client.Of[api.PriceBook](w.op).Update(ctx, book.Meta.ID, book))).v
	}
	type version struct{ number, price int64 }
	for _, limit := range []int{0, 1, 2} { // items per page; 0: the server's default
		var got []version
		for v, err := range w.op.PriceBookVersions(ctx, "dear", limit) {
			v = must(t, v, err)
			if v.EffectiveFrom.IsZero() != (v.Version == 1) {
				t.Errorf("version %d is effective from %s, want a start for all but the first", v.Version, v.EffectiveFrom)
			}
			got = append(got, version{v.Version, v.Prices[0].PriceMicros})
		}
		if want := []version{{2, 3}, {1, 1}}; !slices.Equal(got, want) {
			t.Errorf("versions with limit %d = %v, want %v", limit, got, want)
		}
	}
	for _, limit := range []int{-1, 1001} {
		for _, err := range w.op.PriceBookVersions(ctx, "dear", limit) {
			wantErr(t, err, api.CodeInvalid, "limit")
		}
	}
}
