package server_test

import (
	"encoding/json"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestAddressesAreClaimedByProof checks that an admin who creates a user with another
// person's address takes nothing from that person, learns nothing about them, and does
// not hinder them, neither before nor after their own user is created.
func TestAddressesAreClaimedByProof(t *testing.T) {
	p := newPeople(t)
	const victim = "victim@example.com"
	ours := p.Key(t, api.Meta{Name: "a", Organization: p.acme}, api.RoleAdmin)
	theirs := p.Key(t, api.Meta{Name: "b", Organization: p.other}, api.RoleAdmin)
	makes := func(key, org, password string) api.User {
		t.Helper()
		u, err := ask[api.User](p, key, "POST", "/v1/users", api.User{Meta: api.Meta{Name: victim, Organization: org},
			Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: org}}}})
		wanted(t, "make "+victim+" in "+org, err, "")
		_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: password})
		wanted(t, "set the password", err, "")
		return u
	}
	login := func(password, org string) (api.OrganizationID, *api.Error) {
		t.Helper()
		before := p.hasher.Derived()
		s, err := p.login(api.Credentials{Email: victim, Password: password, Organization: org})
		if n := p.hasher.Derived() - before; n != 1 {
			t.Errorf("login in %q made %d key derivations, want 1 whether the user exists or not", org, n)
		}
		return api.OrganizationID(s.Spec.Grant.Organization), err
	}
	refused := func(what string, err *api.Error) {
		t.Helper()

		_, nobody := p.login(api.Credentials{Email: "nobody@example.com", Password: horse})
		if err == nil || string(api.Encode(err)) != string(api.Encode(nobody)) {
			t.Errorf("%s: login error %v, want the same as for an unknown user: %v", what, err, nobody)
		}
	}

	squatter := makes(theirs, p.other, "the squatter's own")
	if squatter.Status.Verified {
		t.Error("address of a user created by an admin is verified, want unverified")
	}
	_, err := login("the squatter's own", "")
	refused("the squatter without his organization", err)
	org, err := login("the squatter's own", p.other)
	if wanted(t, "the squatter in his organization", err, ""); string(org) != p.other {
		t.Errorf("login of the squatter is in organization %s, want %s", org, p.other)
	}

	makes(ours, p.acme, horse) // the unverified user causes no conflict, and the response is the same
	_, err = login("the squatter's own", "acme")
	refused("the squatter's password elsewhere", err)
	_, err = login(horse, "")
	refused("whose address nobody has proved, without an organization", err)
	for _, name := range []string{"acme", p.acme} {
		if org, err = login(horse, name); err != nil || string(org) != p.acme {
			t.Errorf("login in organization %s = %s, %v; want %s", name, org, err, p.acme)
		}
	}
	_, err = login(horse, "nowhere")
	refused("an organization that there is not", err)

	// A verified user, here one created by an operator, holds the address.
	u := p.user(victim, "", api.Grant{Role: api.RoleMember, Project: p.web})
	if u, err = ask[api.User](p, p.Token, "GET", "/v1/users/"+u.Meta.ID, nil); err != nil || !u.Status.Verified {
		t.Errorf("status of the operator's user = %+v, %v; want verified", u.Status, err)
	}
	if _, err = login(horse, ""); err != nil {
		t.Error(err)
	}
	_, err = ask[api.User](p, p.Token, "POST", "/v1/users", api.User{Meta: api.Meta{Name: victim, Organization: p.lab}})
	if err == nil {
		t.Error("an operator's second user with the same address is accepted, want an error")
	}
	if org, err = login("the squatter's own", p.other); err != nil || string(org) != p.other {
		t.Errorf("login of the squatter after the address was claimed = %s, %v; want %s", org, err, p.other)
	}

	// A new address must be verified again.
	moved, err := ask[api.User](p, theirs, "GET", "/v1/users/"+squatter.Meta.ID, nil)
	wanted(t, "read", err, "")
	moved.Meta.Name = "boss@example.com"
	moved, err = ask[api.User](p, theirs, "PUT", "/v1/users/"+squatter.Meta.ID, moved)
	if wanted(t, "rename", err, ""); moved.Status.Verified {
		t.Error("address changed by an admin is verified, want unverified")
	}
}

// TestLoginNamesACustomer checks that a customer's name is unique only within its
// reseller, so a login that names it must name the reseller too.
func TestLoginNamesACustomer(t *testing.T) {
	p := newPeople(t)
	var sellers [2]api.Organization
	for i, name := range []string{"r1", "r2"} {
		sellers[i] = organization(t, p.op, name, api.OrganizationSpec{})
		by := p.Key(t, api.Meta{Name: "s", Organization: sellers[i].Meta.ID}, api.RoleReseller)
		shop, err := ask[api.Organization](p, by, "POST", "/v1/organizations", api.Organization{Meta: api.Meta{Name: "shop"}})
		wanted(t, "make a customer", err, "")
		u, err := ask[api.User](p, by, "POST", "/v1/users", api.User{Meta: api.Meta{Name: "ann@example.com", Organization: shop.Meta.ID},
			Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: shop.Meta.ID}}}})
		wanted(t, "make a user", err, "")
		_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: name + " has a password"})
		wanted(t, "set the password", err, "")
	}
	for place, code := range map[string]api.Code{"r1/shop": "", sellers[0].Meta.ID + "/shop": "", "r2/shop": api.CodeUnauthenticated, "shop": api.CodeUnauthenticated,
		"r1": api.CodeUnauthenticated, "r1/": api.CodeUnauthenticated, "/shop": api.CodeUnauthenticated, "r1/shop/x": api.CodeUnauthenticated} {
		raw, _ := json.Marshal(place)
		_, err := p.login(api.Credentials{Email: "ann@example.com", Password: "r1 has a password", Organization: place})
		wanted(t, string(raw), err, code)
		p.clock.Advance(3600e9)
	} // A customer of a customer is named with both.
	shop, err := ask[api.Organization](p, p.Key(t, api.Meta{Name: "t", Organization: sellers[0].Meta.ID}, api.RoleReseller), "GET", "/v1/organizations/shop", nil)
	wanted(t, "read the customer", err, "")
	sub := p.Key(t, api.Meta{Name: "u", Organization: shop.Meta.ID}, api.RoleReseller)
	end, err := ask[api.Organization](p, sub, "POST", "/v1/organizations", api.Organization{Meta: api.Meta{Name: "end"}})
	wanted(t, "make the customer's customer", err, "")
	u, err := ask[api.User](p, sub, "POST", "/v1/users", api.User{Meta: api.Meta{Name: "eve@example.com", Organization: end.Meta.ID},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: end.Meta.ID}}}})
	wanted(t, "make its user", err, "")
	_, err = ask[api.PasswordSet](p, "", "POST", "/v1/password/link", api.PasswordToken{Token: u.Link.Token, Password: "eve has a password"})
	wanted(t, "set its password", err, "")
	for place, code := range map[string]api.Code{"r1/shop/end": "", "shop/end": api.CodeUnauthenticated, "r1/end": api.CodeUnauthenticated, "r1/shop/end/end": api.CodeUnauthenticated} {
		_, err := p.login(api.Credentials{Email: "eve@example.com", Password: "eve has a password", Organization: place})
		wanted(t, place, err, code)
		p.clock.Advance(3600e9)
	}
}
