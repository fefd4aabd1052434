package plan

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// A suspended organization's instances are held, and its customers' too, wherever they
// are placed, until it is resumed.
func TestSuspendedIsHeld(t *testing.T) {
	s := cluster().node("n1", 16*gib).instance("a", "flv-1", 0, 0).instance("b", "flv-1", 0, 0).instance("c", "flv-1", 0, 0)
	of := func(id, org string) {
		in := s.Instances[id]
		in.Meta.Organization = org
		s.Instances[id] = in
	}
	of("a", "org-customer")
	of("b", "org-reseller")
	of("c", "org-other")
	suspend := func(id, parent string, why *api.OrganizationSuspension) {
		s.Organizations[id] = api.Organization{Meta: api.Meta{ID: id, Name: id, Organization: parent}, Spec: api.OrganizationSpec{Suspended: why}}
	}
	suspend("org-reseller", "", nil)
	suspend("org-customer", "org-reseller", nil)
	suspend("org-other", "", nil)
	check := func(when, a, b, c string) {
		t.Helper()
		settle(t, s)
		for id, want := range map[string]string{"a": a, "b": b, "c": c} {
			got := s.Instances[id].Assignment
			if got.Node == "" || (got.Hold != "") != (want != "") || !strings.Contains(got.Hold, want) {
				t.Errorf("%s: hold of %s = %q, want %q; assignment %+v", when, id, got.Hold, want, got)
			}
		}
	}
	check("at first", "", "", "")
	suspend("org-customer", "org-reseller", &api.OrganizationSuspension{Reason: "invoice 7 is open"})
	check("the customer", "org-customer is suspended: invoice 7 is open", "", "")
	suspend("org-customer", "org-reseller", nil)
	suspend("org-reseller", "", &api.OrganizationSuspension{})
	check("the reseller", "the seller of its organization is suspended", "org-reseller is suspended: no reason", "")

	s.instance("d", "flv-1", 0, 0) // held from its first assignment on
	of("d", "org-customer")
	for _, c := range next(t, s, now) {
		if commit(t, s, c); c.ID == "d" && s.Instances["d"].Assignment.Hold == "" {
			t.Error("first assignment of d has no hold, want one")
		}
	}
	suspend("org-reseller", "", nil)
	check("resumed", "", "", "")

	in := s.Instances["a"] // a migration ends first
	in.Assignment.MigrateTo = "n2"
	s.Instances["a"] = in
	suspend("org-customer", "org-reseller", &api.OrganizationSuspension{})
	for _, c := range planHolds(s, nil) {
		if c.ID == "a" {
			t.Errorf("instance a is held while it is migrated: %+v, want no command", c)
		}
	}
}
