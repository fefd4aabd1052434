package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// notedOffers records the last query for offers.
type notedOffers struct {
	servertest.FakeOffers
	last api.OfferQuery
}

func (a *notedOffers) Offers(ctx context.Context, q api.OfferQuery) (api.OfferList, error) {
	a.last = q
	return a.FakeOffers.Offers(ctx, q)
}

// TestWhoseOffers checks whose prices offers have: those of the project's organization,
// of the named one, of the caller's, or for an operator the default ones.
func TestWhoseOffers(t *testing.T) {
	var offers notedOffers
	e := servertest.StartWith(t, func(o *server.Options) { o.Offers = &offers })
	op := must(t, ret(client.New(client.Options{Server: e.URL, Token: e.Token}))).v
	org := must(t, ret(client.Of[api.Organization](op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}}))).v
	foe := must(t, ret(client.Of[api.Organization](op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "foe"}}))).v
	prj := must(t, ret(client.Of[api.Project](op).Create(t.Context(), api.Project{Meta: api.Meta{Name: "web", Organization: "acme"}}))).v
	flavor := must(t, ret(client.Of[api.Flavor](op).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: "small"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 2 << 30}}))).v
	token := e.Key(t, api.Meta{Name: "v", Organization: org.Meta.ID, Project: prj.Meta.ID}, api.RoleViewer)
	viewer := must(t, ret(client.New(client.Options{Server: e.URL, Token: token}))).v
	list := func(a *client.API, p api.ListOffersParams) (n int, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, failed := range a.Offers(ctx, p) {
			if failed != nil {
				return n, failed
			}
			n++
		}
		return n, nil
	}
	for _, c := range []struct {
		who  *client.API
		p    api.ListOffersParams
		want api.OrganizationID
	}{
		{op, api.ListOffersParams{}, ""},
		{op, api.ListOffersParams{Organization: "foe"}, api.OrganizationID(foe.Meta.ID)},
		{op, api.ListOffersParams{Project: prj.Meta.ID}, api.OrganizationID(org.Meta.ID)},
		{viewer, api.ListOffersParams{}, api.OrganizationID(org.Meta.ID)},
		{viewer, api.ListOffersParams{Project: "web"}, api.OrganizationID(org.Meta.ID)},
	} {
		if _, err := list(c.who, c.p); err != nil || offers.last.Organization != c.want {
			t.Errorf("offers for %+v have prices of %q, error %v; want %q", c.p, offers.last.Organization, err, c.want)
		}
	}
	if n, err := list(op, api.ListOffersParams{Flavor: "small", Limit: 1}); err != nil || n != 2 || offers.last.Flavor != api.FlavorID(flavor.Meta.ID) {
		t.Errorf("%d offers for flavor %s on pages of one, error %v; want 2 for %s", n, offers.last.Flavor, err, flavor.Meta.ID)
	}
	for _, c := range []struct {
		field string
		p     api.ListOffersParams
	}{
		{"organization", api.ListOffersParams{Organization: "foe"}},
		{"project", api.ListOffersParams{Project: "none"}},
		{"flavor", api.ListOffersParams{Flavor: "none"}},
		{"tier", api.ListOffersParams{Tier: "golden"}},
		{"vramBytes", api.ListOffersParams{VramBytes: 1}},
		{"sharePercent", api.ListOffersParams{VramBytes: 1 << 30, SharePercent: 101}},
		{"sharePercent", api.ListOffersParams{SharePercent: 10}},
		{"limit", api.ListOffersParams{Limit: 1001}},
	} {
		_, err := list(viewer, c.p)
		wantErr(t, err, api.CodeInvalid, c.field)
	}
}
