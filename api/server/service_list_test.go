package server_test

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func account(name, email string, labels map[string]string) api.Service {
	return api.Service{Meta: api.Meta{Name: name, Labels: labels}, Spec: api.ServiceSpec{Type: api.ServiceIsAccount, Email: email}}
}

// TestServiceList checks that services have the list parameters of all kinds, within
// what the seller has sold.
func TestServiceList(t *testing.T) {
	s := newShop(t, nil)
	sold := client.Of[api.Service](s.sells)
	for _, a := range []api.Service{
		account("whmcs:1", "cid@example.com", map[string]string{"plan": "gold"}), account("whmcs:2", "ann@example.com", map[string]string{"plan": "silver"}),
		account("blesta:1", "bob@example.com", map[string]string{"plan": "gold"}), machine("whmcs:3", "dan@example.com", "small"),
	} {
		must(t, ret(sold.Create(t.Context(), a)))
	}
	must(t, ret(client.Of[api.Service](s.op).Create(t.Context(), account("whmcs:9", "eve@example.com", map[string]string{"plan": "gold"}))))
	for _, c := range []struct {
		q    client.Query
		want string
	}{
		{client.Query{Sort: "spec.email"}, "whmcs:2 blesta:1 whmcs:1 whmcs:3"},
		{client.Query{Sort: "-spec.email", Limit: 1}, "whmcs:3 whmcs:1 blesta:1 whmcs:2"},
		{client.Query{Sort: "name", Labels: "plan=gold"}, "blesta:1 whmcs:1"},
		{client.Query{Sort: "name", Fields: "spec.type=machine"}, "whmcs:3"},
		{client.Query{Search: "whmcs"}, "whmcs:1 whmcs:2 whmcs:3"},
		{client.Query{Name: "whmcs:2"}, "whmcs:2"},
	} {
		var got []string
		for o, err := range sold.All(t.Context(), c.q) {
			if err != nil {
				t.Fatalf("list of services by %+v: %v", c.q, err)
			}
			got = append(got, o.Meta.Name)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("list of services by %+v = %q, want %q", c.q, got, c.want)
		}
	}
	p := must(t, ret(sold.Page(t.Context(), client.Query{Limit: 1, Count: true}))).v
	if p.Total != 4 || len(p.Items) != 1 || p.Items[0].Status.Phase == "" {
		t.Errorf("page of services = %+v, want 1 of 4 with its phase", p)
	}
	got, _ := asked[api.ServiceList](t, s.world, 200, "GET", "/v1/services?installation=whmcs&count=true", "")
	if got.Total != 1 {
		t.Errorf("operator's list of its installation = %+v, want its own service only", got)
	}
	_, err := sold.Page(t.Context(), client.Query{Sort: "spec.machine"})
	wantErr(t, err, api.CodeInvalid, "sort")
}

// TestServiceIfMatch checks that a service is changed and ended only at the revision of
// If-Match, and that the response to a change has the new revision.
func TestServiceIfMatch(t *testing.T) {
	s := newShop(t, nil)
	const path, body, other = "/v1/services/whmcs:1", `{"meta": {"labels": {"plan": "gold"}}, "spec": {"type": "account", "email": "ann@example.com"}}`,
		`{"spec": {"type": "account", "email": "ann@example.com", "displayName": "Ann"}}`
	for _, tag := range []string{"*", `"1"`} {
		asked[api.Problem](t, s.world, 412, "PUT", path, body, "If-Match", tag)
	}
	_, first := asked[api.Service](t, s.world, 200, "PUT", path, body)
	changed, second := asked[api.Service](t, s.world, 200, "PUT", path, other, "If-Match", first.Get("ETag"))
	_, read := asked[api.Service](t, s.world, 200, "GET", path, "")
	if tag := second.Get("ETag"); tag == first.Get("ETag") || tag != read.Get("ETag") {
		t.Errorf("ETag after a change = %s, want that of a GET, %s", tag, read.Get("ETag"))
	}
	if changed.Spec.DisplayName != "Ann" || changed.Meta.Labels["plan"] != "gold" {
		t.Errorf("service after a change without labels = %+v, want the new display name and the labels kept", changed)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		p, _ := asked[api.Problem](t, s.world, 412, method, path, other, "If-Match", first.Get("ETag"))
		if p.Code != api.CodePrecondition || p.Hint == "" {
			t.Errorf("%s with an old ETag: %+v, want code %s and a hint", method, p, api.CodePrecondition)
		}
	}
	if now, _ := asked[api.Service](t, s.world, 200, "GET", path, ""); now.Spec.TerminatedAt != nil || now.Meta.Revision != changed.Meta.Revision {
		t.Errorf("service after refused requests = %+v, want revision %d", now, changed.Meta.Revision)
	}
	relabeled, third := asked[api.Service](t, s.world, 200, "PUT", path, strings.Replace(other, "{", `{"meta": {"labels": {"plan": "silver"}}, `, 1), "If-Match", "*")
	if relabeled.Meta.Labels["plan"] != "silver" {
		t.Errorf("labels of the service = %v, want plan=silver", relabeled.Meta.Labels)
	}
	asked[api.Problem](t, s.world, 400, "PUT", path, strings.Replace(other, "{", `{"meta": {"labels": {"": "x"}}, `, 1))
	ended, _ := asked[api.Service](t, s.world, 200, "DELETE", path, "", "If-Match", third.Get("ETag"))
	if ended.Spec.TerminatedAt == nil {
		t.Errorf("service after DELETE = %+v, want it ended", ended)
	}
}
