package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestPriceBooksOfResellers checks that a reseller creates price books of its own and
// assigns them to its customers, and that no other organization can see, use or change
// them.
func TestPriceBooksOfResellers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	books := client.Of[api.PriceBook]
	spec := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: 5, Per: 3600}}}
	book := func(as *client.API, name, organization string) (api.PriceBook, error) {
		return books(as).Create(ctx, api.PriceBook{Meta: api.Meta{Name: name, Organization: organization}, Spec: spec})
	}
	r1, r2 := organization(t, w.op, "r1", api.OrganizationSpec{}), organization(t, w.op, "r2", api.OrganizationSpec{})
	one, two := w.as(api.RoleReseller, r1.Meta.ID, ""), w.as(api.RoleReseller, r2.Meta.ID, "")
	must(t, ret(book(w.op, api.DefaultPriceBook, "")))
	gold := must(t, ret(book(one, "gold", ""))).v
	if gold.Meta.Organization != r1.Meta.ID {
		t.Errorf("price book of a reseller belongs to %q, want %s", gold.Meta.Organization, r1.Meta.ID)
	}
	must(t, ret(book(two, "gold", "")))
	shop := organization(t, one, "shop", api.OrganizationSpec{PriceBook: "gold"})
	if string(shop.Spec.PriceBook) != gold.Meta.ID {
		t.Errorf("price book of the customer = %s, want %s", shop.Spec.PriceBook, gold.Meta.ID)
	}

	// Other organizations are refused.
	_, err := book(one, api.DefaultPriceBook, "")
	wantErr(t, err, api.CodeInvalid, "meta.name")
	_, err = book(one, "silver", shop.Meta.ID)
	wantErr(t, err, api.CodeInvalid, "meta.organization")
	_, err = book(w.as(api.RoleAdmin, w.acme, ""), "silver", "")
	wantErr(t, err, api.CodeForbidden, "")
	_, err = books(two).Get(ctx, gold.Meta.ID, client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
	_, err = books(two).Delete(ctx, gold.Meta.ID)
	wantErr(t, err, api.CodeNotFound, "")
	_, err = client.Of[api.Organization](two).Create(ctx, api.Organization{Meta: api.Meta{Name: "thief"}, Spec: api.OrganizationSpec{PriceBook: api.PriceBookID(gold.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.priceBook")
	for _, to := range []string{r1.Meta.ID, w.acme} { // not even by an operator
		o := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, to, client.Query{}))).v
		o.Spec.PriceBook = api.PriceBookID(gold.Meta.ID)
		_, err = client.Of[api.Organization](w.op).Update(ctx, to, o)
		wantErr(t, err, api.CodeInvalid, "spec.priceBook")
	}
	o := must(t, ret(client.Of[api.Organization](w.op).Get(ctx, r2.Meta.ID, client.Query{}))).v
	o.Spec.Offers = []api.PriceBookID{api.PriceBookID(gold.Meta.ID)}
	_, err = client.Of[api.Organization](w.op).Update(ctx, r2.Meta.ID, o)
	wantErr(t, err, api.CodeInvalid, "spec.offers[0]")

	// Only operators change the cluster's price books.
	standard := must(t, ret(books(one).Get(ctx, api.DefaultPriceBook, client.Query{}))).v
	standard.Spec.Prices[0].PriceMicros = 1
	_, err = books(one).Update(ctx, standard.Meta.ID, standard)
	wantErr(t, err, api.CodeForbidden, "")
	for _, err := range one.PriceBookVersions(ctx, api.DefaultPriceBook, 0) {
		wantErr(t, err, api.CodeForbidden, "")
	}

	// The reseller changes its own, and sees the old versions.
	gold.Spec.Prices[0].PriceMicros = 6
	gold = must(t, ret(books(one).Update(ctx, gold.Meta.ID, gold))).v
	renamed := gold
	renamed.Meta.Name = api.DefaultPriceBook
	_, err = books(one).Update(ctx, gold.Meta.ID, renamed)
	wantErr(t, err, api.CodeInvalid, "meta.name")
	var versions []int64
	for v, err := range one.PriceBookVersions(ctx, gold.Meta.ID, 0) {
		versions = append(versions, must(t, v, err).Version)
	}
	if want := []int64{2, 1}; !slices.Equal(versions, want) {
		t.Errorf("versions = %v, want %v", versions, want)
	}
	_, err = books(one).Delete(ctx, gold.Meta.ID)
	wantErr(t, err, api.CodeInUse, "")
	see := func(as *client.API) (names []string) {
		for b, err := range books(as).All(ctx, client.Query{}) {
			names = append(names, must(t, b, err).Meta.Name)
		}
		slices.Sort(names)
		return names
	}
	if got, want := see(one), []string{api.DefaultPriceBook, "gold"}; !slices.Equal(got, want) {
		t.Errorf("price books that the reseller sees = %v, want %v", got, want)
	}
	if got, want := see(w.as(api.RoleAdmin, shop.Meta.ID, "")), []string{"gold"}; !slices.Equal(got, want) {
		t.Errorf("price books that its customer sees = %v, want %v", got, want)
	}
}

// TestWholesaleTerms checks that only resellers have wholesale terms, that operators
// set them, and that they cannot change for hours that have begun.
func TestWholesaleTerms(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	next := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
	terms := func(periods ...api.Wholesale) *api.OrganizationBilling {
		return &api.OrganizationBilling{Mode: api.BillingInvoice, Wholesale: periods}
	}
	r1 := organization(t, w.op, "r1", api.OrganizationSpec{Billing: terms()})
	seller := w.as(api.RoleReseller, r1.Meta.ID, "")
	shop := organization(t, seller, "shop", api.OrganizationSpec{})
	set := func(as *client.API, id string, periods ...api.Wholesale) error {
		o, err := client.Of[api.Organization](as).Get(ctx, id, client.Query{})
		if err != nil {
			return err
		}
		o.Spec.Billing = terms(periods...)
		_, err = client.Of[api.Organization](as).Update(ctx, id, o)
		return err
	}
	hours := func(n int) time.Time { return next.Add(time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		as      *client.API
		of      string
		periods []api.Wholesale
		code    api.Code
		field   string
	}{
		"of the past":            {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(-2)}}, api.CodeInvalid, "spec.billing.wholesale"},
		"within an hour":         {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(1).Add(time.Minute)}}, api.CodeInvalid, "spec.billing.wholesale[0].from"},
		"that ends before":       {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(2), Until: hours(1)}}, api.CodeInvalid, "spec.billing.wholesale[0].until"},
		"that overlap":           {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(1), Until: hours(5)}, {From: hours(4)}}, api.CodeInvalid, "spec.billing.wholesale[1].from"},
		"of its customer":        {seller, shop.Meta.ID, []api.Wholesale{{From: hours(1)}}, "", ""},
		"by the reseller itself": {seller, r1.Meta.ID, []api.Wholesale{{From: hours(1)}}, api.CodeForbidden, ""},
		"to come":                {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(1), Until: hours(2)}, {From: hours(3)}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := set(c.as, c.of, c.periods...)
			if c.code == "" {
				if err != nil {
					t.Errorf("update of the wholesale terms: %v, want no error", err)
				}
				return
			}
			wantErr(t, err, c.code, c.field)
		})
	}
}

// TestResellersOfResellers checks that a reseller's customer can be a reseller itself,
// with customers and prices of its own, which only the reseller above can also manage.
func TestResellersOfResellers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	orgs, books := client.Of[api.Organization], client.Of[api.PriceBook]
	spec := api.PriceBookSpec{Currency: "EUR", Prices: []api.Price{}}
	top := organization(t, w.op, "top", api.OrganizationSpec{})
	first := w.as(api.RoleReseller, top.Meta.ID, "")
	must(t, ret(books(first).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "wholesale"}, Spec: spec})))
	mid := organization(t, first, "mid", api.OrganizationSpec{PriceBook: "wholesale"})
	second := connect(t, w.Env, must(t, ret(client.Of[api.APIKey](first).Create(ctx,
		api.APIKey{Meta: api.Meta{Name: "sales", Organization: mid.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleReseller}}))).v.Secret)
	must(t, ret(books(second).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "retail"}, Spec: spec})))
	end := organization(t, second, "end", api.OrganizationSpec{PriceBook: "retail"})
	if end.Meta.Organization != mid.Meta.ID {
		t.Fatalf("customer belongs to %s, want %s", end.Meta.Organization, mid.Meta.ID)
	}
	sister := organization(t, first, "sister", api.OrganizationSpec{})
	admin := w.as(api.RoleAdmin, end.Meta.ID, "")

	beside := w.as(api.RoleReseller, sister.Meta.ID, "")
	site := must(t, ret(client.Of[api.Project](second).Create(ctx, api.Project{Meta: api.Meta{Name: "site", Organization: end.Meta.ID}}))).v
	for name, c := range map[string]struct {
		as   *client.API
		want []string
	}{
		"above": {first, []string{"end", "mid", "sister", "top"}}, "between": {second, []string{"end", "mid"}},
		"below": {admin, []string{"end"}}, "beside": {beside, []string{"sister"}},
	} {
		var got []string
		for o, err := range orgs(c.as).All(ctx, client.Query{}) {
			got = append(got, must(t, o, err).Meta.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("organizations that role %s sees = %v, want %v", name, got, c.want)
		}
	}
	must(t, ret(client.Of[api.Project](first).Get(ctx, site.Meta.ID, client.Query{})))
	_, err := client.Of[api.Project](beside).Get(ctx, site.Meta.ID, client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
	_, err = books(second).Get(ctx, "wholesale", client.Query{}) // it pays by it
	if err != nil {
		t.Errorf("the reseller between gets the price book that it pays by: %v, want no error", err)
	}
	_, err = books(admin).Get(ctx, "wholesale", client.Query{})
	wantErr(t, err, api.CodeNotFound, "")
	_, err = books(first).Create(ctx, api.PriceBook{Meta: api.Meta{Name: "gift", Organization: mid.Meta.ID}, Spec: spec})
	wantErr(t, err, api.CodeInvalid, "meta.organization")

	// Nobody can extend their own role.
	_, err = client.Of[api.APIKey](w.as(api.RoleAdmin, mid.Meta.ID, "")).Create(ctx,
		api.APIKey{Meta: api.Meta{Name: "more", Organization: mid.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleReseller}})
	wantErr(t, err, api.CodeForbidden, "spec.role")
	_, err = client.Of[api.APIKey](second).Create(ctx, api.APIKey{Meta: api.Meta{Name: "up", Organization: top.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleReseller}})
	wantErr(t, err, api.CodeInvalid, "meta.organization")

	// A suspension from above cannot be lifted below.
	suspend := func(as *client.API, id string, s *api.OrganizationSuspension) error {
		o := must(t, ret(orgs(as).Get(ctx, id, client.Query{}))).v
		o.Spec.Suspended = s
		_, err := orgs(as).Update(ctx, id, o)
		return err
	}
	must(t, 0, suspend(first, end.Meta.ID, &api.OrganizationSuspension{Reason: "abuse"}))
	wantErr(t, suspend(second, end.Meta.ID, nil), api.CodeForbidden, "spec.suspended")
	wantErr(t, suspend(second, end.Meta.ID, &api.OrganizationSuspension{Reason: "mine now"}), api.CodeForbidden, "spec.suspended")
	must(t, 0, suspend(first, end.Meta.ID, nil))
	must(t, 0, suspend(second, end.Meta.ID, &api.OrganizationSuspension{Reason: "unpaid"}))
	must(t, 0, suspend(first, end.Meta.ID, nil))
	must(t, 0, suspend(first, mid.Meta.ID, &api.OrganizationSuspension{Reason: "unpaid"}))
	_, err = client.Of[api.Project](admin).Create(ctx, api.Project{Meta: api.Meta{Name: "more"}})
	wantErr(t, err, api.CodeForbidden, "")
}
