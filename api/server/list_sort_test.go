package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestListByReferences checks that a field with IDs of other objects is sorted by their
// names, and by the ID of one that the caller does not see.
func TestListByReferences(t *testing.T) {
	w := newWorld(t)
	parents := map[string]string{}
	for _, name := range []string{"zeta", "alpha", "mid"} {
		parents[name] = must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: name}}))).v.Meta.ID
	}
	for customer, parent := range map[string]string{"c1": "zeta", "c2": "alpha", "c3": "mid"} {
		must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: customer}, Spec: api.OrganizationSpec{Parent: api.OrganizationID(parents[parent])}})))
	}
	for _, limit := range []int{0, 1} {
		var found []string
		for o, err := range client.Of[api.Organization](w.op).All(t.Context(), client.Query{Sort: "-spec.parent", Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			if o.Spec.Parent != "" {
				found = append(found, o.Meta.Name)
			}
		}
		if got := strings.Join(found, " "); got != "c1 c3 c2" {
			t.Errorf("organizations by the name of their reseller, last first, pages of %d = %s; want c1 c3 c2", limit, got)
		}
	}
}

// TestListByFields checks that lists are sorted and filtered by fields on the server,
// across all pages, and show no more objects than without.
func TestListByFields(t *testing.T) {
	w := newWorld(t)
	member, stranger := w.as(api.RoleMember, w.acme, w.web), w.as(api.RoleMember, w.other, w.theirs)
	for i, gib := range []int64{30, 4, 100, 4, 7} {
		v := must(t, ret(client.Of[api.Volume](member).Create(t.Context(), api.Volume{Meta: api.Meta{Name: fmt.Sprintf("v%d", i), Project: w.web}, Spec: api.VolumeSpec{SizeBytes: gib << 30}}))).v
		if i > 2 {
			w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindVolume, ID: v.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.VolumeStatus{Phase: api.VolumeReady})})
		}
	}
	names := func(c *client.API, q client.Query) string {
		t.Helper()
		var found []string
		for v, err := range client.Of[api.Volume](c).All(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, v.Meta.Name)
		}
		return strings.Join(found, " ")
	}
	for _, limit := range []int{0, 1, 2} {
		for _, c := range []struct {
			who  *client.API
			q    client.Query
			want string
		}{
			{member, client.Query{Sort: "-name"}, "v4 v3 v2 v1 v0"},
			{member, client.Query{Sort: "-spec.sizeBytes", Fields: "spec.sizeBytes!=4294967296"}, "v2 v0 v4"},
			{member, client.Query{Sort: "state", Fields: "state=Ready", Search: "v4"}, "v4"},
			{w.op, client.Query{Sort: "-name", Fields: "state=Pending", Project: w.web}, "v2 v1 v0"},
			{stranger, client.Query{Sort: "-name"}, ""},
			{stranger, client.Query{Fields: "project=" + w.web}, ""},
		} {
			c.q.Limit = limit
			if got := names(c.who, c.q); got != c.want {
				t.Errorf("list with %+v = %q, want %q", c.q, got, c.want)
			}
		}
		if got := strings.Fields(names(member, client.Query{Sort: "spec.sizeBytes", Limit: limit})); !slices.Equal(got[2:], []string{"v4", "v0", "v2"}) {
			t.Errorf("volumes by size = %v, want the largest last", got)
		}
	}
	page, err := client.Of[api.Volume](member).Page(t.Context(), client.Query{Sort: "-createdAt", Count: true, Limit: 2})
	if must(t, page, err); page.Total != 5 || len(page.Items) != 2 {
		t.Errorf("page has %d items and a total of %d, want 2 and 5", len(page.Items), page.Total)
	}
	for field, q := range map[string]client.Query{
		"sort": {Sort: "spec.wrappedKey"}, "fieldSelector": {Fields: "spec.wrappedKey"}, "continue": {Sort: "-name", Continue: "?"},
	} {
		_, err := client.Of[api.Volume](member).Page(t.Context(), q)
		wantErr(t, err, api.CodeInvalid, field)
	}
}
