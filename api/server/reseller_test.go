package server_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func organization(t *testing.T, c *client.API, name string, s api.OrganizationSpec) api.Organization {
	t.Helper()
	return must(t, ret(client.Of[api.Organization](c).Create(t.Context(), api.Organization{Meta: api.Meta{Name: name}, Spec: s}))).v
}

// TestReseller checks that a reseller manages its customers and everything in them, and
// has no access to those of others.
func TestReseller(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r1, r2 := organization(t, w.op, "r1", api.OrganizationSpec{}), organization(t, w.op, "r2", api.OrganizationSpec{})
	seller := w.as(api.RoleReseller, r1.Meta.ID, "")
	rival := w.as(api.RoleReseller, r2.Meta.ID, "")
	shop := organization(t, seller, "shop", api.OrganizationSpec{})
	if string(shop.Spec.Parent) != r1.Meta.ID || shop.Meta.Organization != r1.Meta.ID {
		t.Fatalf("customer = %+v, want one of reseller %s", shop, r1.Meta.ID)
	}
	// Names are unique within a reseller, so another one learns nothing by trying them.
	organization(t, rival, "shop", api.OrganizationSpec{})
	_, err := client.Of[api.Organization](w.op).Get(ctx, "shop", client.Query{})
	wantErr(t, err, api.CodeInvalid, "")
	site := must(t, ret(client.Of[api.Project](seller).Create(ctx, api.Project{Meta: api.Meta{Name: "site", Organization: "shop"}}))).v
	must(t, ret(client.Of[api.Instance](seller).Create(ctx, api.Instance{Meta: api.Meta{Name: "www", Project: "site"}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})))
	admin := connect(t, w.Env, must(t, ret(client.Of[api.APIKey](seller).Create(ctx, api.APIKey{Meta: api.Meta{Name: "boss", Organization: "shop"}, Spec: api.APIKeySpec{Role: api.RoleAdmin}}))).v.Secret)
	must(t, ret(client.Of[api.Instance](admin).Get(ctx, "www", client.Query{})))
	for what, list := range map[string]int{
		"seller": count(t, client.Of[api.Organization](seller)), "rival": count(t, client.Of[api.Organization](rival)), "customer": count(t, client.Of[api.Organization](admin)),
	} {
		if want := map[string]int{"seller": 2, "rival": 2, "customer": 1}[what]; list != want {
			t.Errorf("%s sees %d organizations, want %d", what, list, want)
		}
	}
	if n, m := count(t, client.Of[api.Instance](seller)), count(t, client.Of[api.Instance](rival)); n != 1 || m != 0 {
		t.Errorf("instances that the seller and the rival see = %d and %d, want 1 and 0", n, m)
	}
	for name, err := range map[string]error{
		"read another's customer":    fails(client.Of[api.Organization](rival).Get(ctx, shop.Meta.ID, client.Query{})),
		"change another's customer":  fails(client.Of[api.Organization](rival).Update(ctx, shop.Meta.ID, shop)),
		"read another's project":     fails(client.Of[api.Project](rival).Get(ctx, site.Meta.ID, client.Query{})),
		"read an organization":       fails(client.Of[api.Organization](seller).Get(ctx, w.acme, client.Query{})),
		"delete another's customer":  fails(client.Of[api.Organization](rival).Delete(ctx, shop.Meta.ID)),
		"preview another's invoice":  fails(rival.InvoicePreview(ctx, shop.Meta.ID, shop.Meta.CreatedAt, shop.Meta.CreatedAt.AddDate(0, 1, 0))),
		"start in another's project": fails(client.Of[api.Volume](rival).Create(ctx, api.Volume{Meta: api.Meta{Name: "v", Project: site.Meta.ID}, Spec: api.VolumeSpec{SizeBytes: 1 << 20}})),
	} {
		if c := api.CodeOf(err); c != api.CodeNotFound && (name != "start in another's project" || c != api.CodeInvalid) {
			t.Errorf("%s: error %v, want %s", name, err, api.CodeNotFound)
		}
	}
	// There are at most three levels, and organizations cannot be moved.
	deep := must(t, ret(client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "deep"}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(shop.Meta.ID)}}))).v
	_, err = client.Of[api.Organization](w.op).Create(ctx, api.Organization{Meta: api.Meta{Name: "deeper"}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(deep.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.parent")
	_, err = client.Of[api.Organization](seller).Create(ctx, api.Organization{Meta: api.Meta{Name: "other"}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(r2.Meta.ID)}})
	wantErr(t, err, api.CodeInvalid, "spec.parent")
	moved := shop
	moved.Spec.Parent = api.OrganizationID(r2.Meta.ID)
	_, err = client.Of[api.Organization](w.op).Update(ctx, shop.Meta.ID, moved)
	wantErr(t, err, api.CodeInvalid, "spec.parent")
	for _, c := range []struct {
		by   *client.API
		org  string
		role api.Role
		code api.Code
	}{
		{seller, deep.Meta.ID, api.RoleReseller, api.CodeInvalid}, {w.op, deep.Meta.ID, api.RoleReseller, api.CodeInvalid},
		{seller, "", api.RoleOperator, api.CodeForbidden}, {admin, shop.Meta.ID, api.RoleReseller, api.CodeForbidden},
	} {
		_, err := client.Of[api.APIKey](c.by).Create(ctx, api.APIKey{Meta: api.Meta{Name: "k", Organization: c.org}, Spec: api.APIKeySpec{Role: c.role}})
		wantErr(t, err, c.code, "spec.role")
	}
	_, err = client.Of[api.Organization](seller).Update(ctx, r1.Meta.ID, r1)
	wantErr(t, err, api.CodeForbidden, "")
	_, err = client.Of[api.Organization](w.op).Delete(ctx, r1.Meta.ID)
	wantErr(t, err, api.CodeInUse, "")
}

// TestSuspension checks that a suspended organization can read, stop and delete, but
// not create, change or start anything, whoever asks. Only an operator lifts an
// operator's suspension.
func TestSuspension(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := organization(t, w.op, "r", api.OrganizationSpec{})
	seller := w.as(api.RoleReseller, r.Meta.ID, "")
	shop := organization(t, seller, "shop", api.OrganizationSpec{})
	site := must(t, ret(client.Of[api.Project](seller).Create(ctx, api.Project{Meta: api.Meta{Name: "site", Organization: "shop"}}))).v
	admin := w.as(api.RoleAdmin, shop.Meta.ID, "")
	launch := func(c *client.API, name string) (api.Instance, error) {
		return client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: name, Project: site.Meta.ID}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})
	}
	in := must(t, ret(launch(admin, "www"))).v
	suspend := func(by *client.API, org string, s *api.OrganizationSuspension) error {
		t.Helper()
		o := must(t, ret(client.Of[api.Organization](by).Get(ctx, org, client.Query{}))).v
		o.Spec.Suspended = s
		_, err := client.Of[api.Organization](by).Update(ctx, o.Meta.ID, o)
		return err
	}
	check := func(what string, suspended bool) {
		t.Helper()
		in := must(t, ret(client.Of[api.Instance](admin).Get(ctx, in.Meta.ID, client.Query{}))).v
		tries := map[string]error{
			"create":     fails(launch(admin, "more")),
			"start":      fails(admin.StartInstance(ctx, in.Meta.ID)),
			"restart":    fails(admin.RestartInstance(ctx, in.Meta.ID)),
			"operator":   fails(w.op.StartInstance(ctx, in.Meta.ID)),
			"an API key": fails(client.Of[api.APIKey](admin).Create(ctx, api.APIKey{Meta: api.Meta{Name: "k"}, Spec: api.APIKeySpec{Role: api.RoleAdmin}})),
			"a project":  fails(client.Of[api.Project](admin).Create(ctx, api.Project{Meta: api.Meta{Name: "p"}})),
		}
		if suspended {
			tries["change"] = fails(client.Of[api.Instance](admin).Update(ctx, in.Meta.ID, in))
			tries["stop"] = fails(admin.StopInstance(ctx, in.Meta.ID))
		}
		for name, err := range tries {
			refused := api.CodeOf(err) == api.CodeForbidden && err != nil
			if want := suspended && name != "stop"; refused != want {
				t.Errorf("%s, %s: error %v, want refused: %v", what, name, err, want)
			}
		}
		if !suspended { // restored for the next round
			for _, err := range []error{fails(client.Of[api.Instance](admin).Delete(ctx, "more")), fails(client.Of[api.APIKey](admin).Delete(ctx, "k")), fails(client.Of[api.Project](admin).Delete(ctx, "p"))} {
				if err != nil {
					t.Error(err)
				}
			}
			page := must(t, ret(w.Store.List(ctx, api.ListQuery{Kind: api.KindInstance, Name: "more", Limit: 1}))).v
			w.Apply(t, api.Command{Op: api.OpForget, Kind: api.KindInstance, ID: page.Items[0].Meta.ID, Expect: api.AnyRevision, Finalizer: api.FinalizerAgent})
		}
	}
	check("at first", false)
	if err := suspend(seller, "shop", &api.OrganizationSuspension{Reason: "unpaid", By: api.RoleOperator}); err != nil {
		t.Fatal(err)
	}
	check("by its reseller", true)
	if err := suspend(seller, "shop", nil); err != nil {
		t.Fatal(err)
	}
	check("resumed", false)
	if err := suspend(w.op, shop.Meta.ID, &api.OrganizationSuspension{Reason: "abuse"}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, suspend(seller, "shop", nil), api.CodeForbidden, "spec.suspended")
	wantErr(t, suspend(seller, "shop", &api.OrganizationSuspension{Reason: "mine"}), api.CodeForbidden, "spec.suspended")
	if err := suspend(w.op, shop.Meta.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := suspend(w.op, r.Meta.ID, &api.OrganizationSuspension{Reason: "wholesale unpaid"}); err != nil {
		t.Fatal(err)
	}
	check("its reseller is", true)
	if _, err := launch(admin, "more"); err == nil || strings.Contains(err.Error(), "wholesale unpaid") {
		t.Errorf("customer of a suspended reseller: error %v, want one without the reseller's reason", err)
	}
	_, err := client.Of[api.Organization](seller).Create(ctx, api.Organization{Meta: api.Meta{Name: "next"}})
	wantErr(t, err, api.CodeForbidden, "")
}

// TestBillingRole checks that role billing reads the usage and charges of all projects
// of its organization.
func TestBillingRole(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for i, project := range []string{w.web, w.lab, w.theirs} {
		org := w.acme
		if project == w.theirs {
			org = w.other
		}
		w.Apply(t, recordOf(i, org, project))
	}
	must(t, ret(client.Of[api.Payment](w.op).Create(ctx, api.Payment{Meta: api.Meta{Organization: "acme"}, Spec: api.PaymentSpec{Currency: "EUR", AmountMicros: 5, Reference: "r"}})))
	payer := w.as(api.RoleBilling, w.acme, "")
	if n := count(t, client.Of[api.UsageRecord](payer)); n != 2 {
		t.Errorf("role billing sees %d usage records, want 2", n)
	}
	if n := count(t, client.Of[api.Payment](payer)); n != 1 {
		t.Errorf("role billing sees %d payments, want 1", n)
	}
	_, err := client.Of[api.Instance](payer).Page(ctx, client.Query{})
	wantErr(t, err, api.CodeForbidden, "")
}

func fails[T any](_ T, err error) error { return err }

func count[T any](t *testing.T, c client.Collection[T]) int {
	t.Helper()
	n := 0
	for _, err := range c.All(t.Context(), client.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
