package auth

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestVisibility(t *testing.T) {
	object := func(kind api.Kind, id, org, project string, spec any) api.Object {
		return api.Object{Kind: kind, Meta: api.Meta{ID: id, Organization: org, Project: project}, Spec: api.Encode(spec)}
	}
	parentOf := func(org string) string { return map[string]string{"o1": "r1", "o2": "r2"}[org] }
	pays := func(org string) PriceBooks {
		return map[string]PriceBooks{"o1": {Own: "b1", Offers: []api.PriceBookID{"b3"}}, "r1": {Offers: []api.PriceBookID{"b2"}}}[org]
	}
	names := []string{"operator", "reseller", "admin", "member", "viewer", "billing", "other-reseller", "broken-reseller", "broken-admin", "broken-member", "broken-billing", "nobody"}
	callers := map[string]Identity{
		"operator": {Role: api.RoleOperator}, "reseller": {Role: api.RoleReseller, Org: "r1"}, "other-reseller": {Role: api.RoleReseller, Org: "r2"},
		"admin": {Role: api.RoleAdmin, Org: "o1"}, "billing": {Role: api.RoleBilling, Org: "o1", User: "u1"},
		"member": {Role: api.RoleMember, Org: "o1", Project: "p1"}, "viewer": {Role: api.RoleViewer, Org: "o1", Project: "p1"},
		"nobody": {}, "broken-reseller": {Role: api.RoleReseller}, "broken-admin": {Role: api.RoleAdmin},
		"broken-member": {Role: api.RoleMember}, "broken-billing": {Role: api.RoleBilling},
	}
	key := func(role api.Role) api.APIKeySpec { return api.APIKeySpec{Role: role} }
	// Objects that all roles see, whatever their scope.
	const shared = " other-reseller broken-reseller broken-admin broken-member"
	for _, c := range []struct {
		name string
		o    api.Object
		seen string // the roles that see it; "+" means that they also own it
	}{
		{"own instance", object(api.KindInstance, "i", "o1", "p1", struct{}{}), "operator+ reseller+ admin+ member+ viewer+"},
		{"sister project's", object(api.KindInstance, "i", "o1", "p2", struct{}{}), "operator+ reseller+ admin+"},
		{"other organization's", object(api.KindInstance, "i", "o2", "p3", struct{}{}), "operator+ other-reseller+"},
		{"reseller's own instance", object(api.KindInstance, "i", "r1", "p9", struct{}{}), "operator+ reseller+"},
		{"nobody's instance", object(api.KindInstance, "i", "", "", struct{}{}), "operator+"},
		{"node", object(api.KindNode, "n", "", "", struct{}{}), "operator+"},
		{"flavor", object(api.KindFlavor, "f", "", "", struct{}{}), "operator+ reseller admin member viewer" + shared},
		{"own price book", object(api.KindPriceBook, "b1", "", "", struct{}{}), "operator+ admin member viewer billing"},
		{"price book that a reseller Offers", object(api.KindPriceBook, "b2", "", "", struct{}{}), "operator+ reseller"},
		{"other price book", object(api.KindPriceBook, "b3", "", "", struct{}{}), "operator+"},
		{"default price book", api.Object{Kind: api.KindPriceBook, Meta: api.Meta{ID: "b0", Name: api.DefaultPriceBook}}, "operator+ reseller other-reseller"},
		{"own organization", object(api.KindOrganization, "o1", "r1", "", struct{}{}), "operator+ reseller+ admin member viewer billing"},
		{"the reseller's organization", object(api.KindOrganization, "r1", "", "", struct{}{}), "operator+ reseller"},
		{"other organization", object(api.KindOrganization, "o2", "r2", "", struct{}{}), "operator+ other-reseller+"},
		{"organization of no reseller", object(api.KindOrganization, "o3", "", "", struct{}{}), "operator+"},
		{"own project", object(api.KindProject, "p1", "o1", "", struct{}{}), "operator+ reseller+ admin+ member+ viewer+ billing+"},
		{"sister project", object(api.KindProject, "p2", "o1", "", struct{}{}), "operator+ reseller+ admin+ billing+"},
		{"usage", object(api.KindUsageRecord, "u", "o1", "p1", struct{}{}), "operator+ reseller+ admin+ member+ viewer+ billing+"},
		{"invoice", object(api.KindInvoice, "a", "o1", "", struct{}{}), "operator+ reseller+ admin+ billing+"},
		{"card", object(api.KindCard, "c", "o1", "", struct{}{}), "operator+ reseller+ admin+ billing+"},
		{"checkout", object(api.KindCheckout, "c", "o1", "", struct{}{}), "operator+ reseller+ admin+ billing+"},
		{"SSH key of the user with role billing", object(api.KindSSHKey, "s", "", "u1", struct{}{}), "billing+"},
		{"other payment", object(api.KindPayment, "a", "o2", "", struct{}{}), "operator+ other-reseller+"},
		{"member's key", object(api.KindAPIKey, "k", "o1", "p1", key(api.RoleMember)), "operator+ reseller+ admin+"},
		{"admin's key", object(api.KindAPIKey, "k", "o1", "", key(api.RoleAdmin)), "operator+ reseller+ admin+"},
		{"reseller's key", object(api.KindAPIKey, "k", "r1", "", key(api.RoleReseller)), "operator+ reseller+"},
		{"reseller's key in a customer", object(api.KindAPIKey, "k", "o1", "", key(api.RoleReseller)), "operator+ reseller+ admin"},
		{"operator's key", object(api.KindAPIKey, "k", "", "", key(api.RoleOperator)), "operator+"},
		{"private image", object(api.KindImage, "m", "o2", "p3", api.ImageSpec{}), "operator+ other-reseller+"},
		{"public image", object(api.KindImage, "m", "o3", "p3", api.ImageSpec{Public: true}), "operator+ reseller admin member viewer" + shared},
		{"the cluster's CA", object(api.KindClusterCA, "ca", "", "", struct{}{}), ""},
	} {
		var got []string
		for _, name := range names {
			id := callers[name]
			id.ParentOf, id.pays = parentOf, pays
			switch sees, owns := id.Sees(c.o), id.Owns(c.o); {
			case sees && owns:
				got = append(got, name+"+")
			case sees:
				got = append(got, name)
			case owns && c.o.Kind != api.KindClusterCA:
				t.Errorf("%s owns %s without seeing it, want both or neither", name, c.name)
			}
		}
		if g := strings.Join(got, " "); g != c.seen {
			t.Errorf("%s is seen by %q, want %q", c.name, g, c.seen)
		}
	}
}

// TestNobodyGrantsMoreThanHisOwn checks that no chain of grants leads to more rights
// than its first role has.
func TestNobodyGrantsMoreThanHisOwn(t *testing.T) {
	for _, by := range api.Roles() {
		for _, r := range api.Roles() {
			if !by.Grants(r) {
				continue
			}
			for op, allowed := range Rights {
				if allowed.Has(r) && !allowed.Has(by) {
					t.Errorf("%s grants %s, which may call %s although %s may not", by, r, op, by)
				}
			}
			for _, next := range api.Roles() {
				if r.Grants(next) && !by.Grants(next) {
					t.Errorf("%s grants %s through %s, which it cannot grant directly", by, next, r)
				}
			}
		}
	}
}
