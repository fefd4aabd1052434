package mail

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// sell makes three organizations one below the other: a reseller, a reseller that is its
// customer, and a customer of that one.
func (h *fixture) sell() {
	h.Helper()
	for id, parent := range map[string]string{"org-00000000000a": "", "org-00000000000b": "org-00000000000a", "org-00000000000c": "org-00000000000b"} {
		h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: id, Name: id[15:], Organization: parent, Data: api.Encode(api.OrganizationSpec{Parent: api.OrganizationID(parent)})})
	}
}

func (h *fixture) brand(organization, name string) {
	h.Helper()
	id := api.BrandingID
	if organization != "" {
		id = api.BrandingIDOf(organization)
	}
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindBranding, ID: id, Name: "branding", Organization: organization, Expect: api.AnyRevision,
		Data: api.Encode(api.BrandingSpec{ProductName: name, SupportEmail: "help@" + strings.ToLower(name) + ".example"})})
}

func (h *fixture) domain(id, organization, name string, approved bool) {
	h.Helper()
	h.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindPortalDomain, ID: id, Name: name, Organization: organization, Data: api.Encode(api.PortalDomainSpec{Approved: approved})})
}

// A message has the name, the support contact and the links of the nearest reseller with a
// branding; what an organization owes is written by whoever sells to it.
func TestMessagesHaveTheNearestBranding(t *testing.T) {
	h := newFixture(t)
	h.sell()
	h.brand("", "Cluster")
	h.brand("org-00000000000a", "Top")
	h.brand("org-00000000000b", "Middle")
	h.domain("pdom-000000000001", "org-00000000000a", "portal.top.example", true)
	h.domain("pdom-000000000002", "org-00000000000b", "portal.middle.example", false)
	m := New(Options{Store: h.store})
	check := func(typ api.MailType, organization, from, link string) {
		t.Helper()
		msg := api.MailMessage{Meta: api.Meta{ID: "mail-1"}, Spec: api.MailMessageSpec{Type: typ, To: "ann@example.com", Organization: organization}}
		brand, err := m.brandOf(t.Context(), msg.Spec)
		if err != nil {
			t.Fatal(err)
		}
		c := compose(msg, h.settings, brand, "secret")
		if c.from.Name != from || c.from.Address != "cloud@example.com" {
			t.Errorf("%s to users of %q is from %s, want name %s", typ, organization, c.from.String(), from)
		}
		if want := "help@" + strings.ToLower(from) + ".example"; c.replyTo != want {
			t.Errorf("answers to %s to users of %q go to %q, want the support of %s, %s", typ, organization, c.replyTo, from, want)
		}
		if want := link + "/#/"; !strings.Contains(c.text, want) || !strings.Contains(c.html, want) {
			t.Errorf("%s to users of %q has no link to %s:\n%s", typ, organization, want, c.text)
		}
		if want := "help@" + strings.ToLower(from) + ".example"; !strings.Contains(c.text, want) {
			t.Errorf("%s to users of %q does not name %s:\n%s", typ, organization, want, c.text)
		}
	}
	const cluster, top = "https://cloud.example.com", "https://portal.top.example"
	for _, typ := range []api.MailType{api.MailTypeInvitation, api.MailTypePasswordReset} {
		check(typ, "", "Cluster", cluster)
		check(typ, "org-00000000000a", "Top", top)
		check(typ, "org-00000000000b", "Middle", cluster) // its host name is not approved
		check(typ, "org-00000000000c", "Middle", cluster)
		check(typ, "org-00000000000f", "Cluster", cluster) // deleted in the meantime
	}
	for _, typ := range []api.MailType{api.MailTypeInvoice, api.MailTypeBilling, api.MailTypeBudget} {
		check(typ, "org-00000000000a", "Cluster", cluster)
		check(typ, "org-00000000000b", "Top", top)
		check(typ, "org-00000000000c", "Middle", cluster)
	}
	h.brand("org-00000000000b", "") // it has none any more
	check(api.MailTypeInvitation, "org-00000000000c", "Top", top)
	check(api.MailTypeInvoice, "org-00000000000c", "Top", top)
}
