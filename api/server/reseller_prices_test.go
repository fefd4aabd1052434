package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// A reseller makes price books of its own and gives them to its customers; nobody else
// sees them, pays by them or changes them.
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
		t.Errorf("a reseller's price book belongs to %q, want the reseller %s", gold.Meta.Organization, r1.Meta.ID)
	}
	must(t, ret(book(two, "gold", "")))
	shop := organization(t, one, "shop", api.OrganizationSpec{PriceBook: "gold"})
	if string(shop.Spec.PriceBook) != gold.Meta.ID {
		t.Errorf("the customer pays by %s, want %s", shop.Spec.PriceBook, gold.Meta.ID)
	}

	// Whose it is not.
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

	// The cluster's are the operator's to change.
	standard := must(t, ret(books(one).Get(ctx, api.DefaultPriceBook, client.Query{}))).v
	standard.Spec.Prices[0].PriceMicros = 1
	_, err = books(one).Update(ctx, standard.Meta.ID, standard)
	wantErr(t, err, api.CodeForbidden, "")
	for _, err := range one.PriceBookVersions(ctx, api.DefaultPriceBook, 0) {
		wantErr(t, err, api.CodeForbidden, "")
	}

	// Its own it changes, and sees what it was.
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
		t.Errorf("got versions %v, want %v", versions, want)
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
		t.Errorf("the reseller sees %v, want %v", got, want)
	}
	if got, want := see(w.as(api.RoleAdmin, shop.Meta.ID, "")), []string{"gold"}; !slices.Equal(got, want) {
		t.Errorf("its customer sees %v, want %v", got, want)
	}
}

// Only a reseller has wholesale terms, operators give them, and what hours that have begun
// are charged for stays.
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
		"of a customer":          {seller, shop.Meta.ID, []api.Wholesale{{From: hours(1)}}, api.CodeInvalid, "spec.billing.wholesale"},
		"by the reseller itself": {seller, r1.Meta.ID, []api.Wholesale{{From: hours(1)}}, api.CodeForbidden, ""},
		"to come":                {w.op, r1.Meta.ID, []api.Wholesale{{From: hours(1), Until: hours(2)}, {From: hours(3)}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := set(c.as, c.of, c.periods...)
			if c.code == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			wantErr(t, err, c.code, c.field)
		})
	}
}
