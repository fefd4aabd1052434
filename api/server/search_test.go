package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// TestSearch checks that a search shows no more objects than a list.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	member, stranger := w.as(api.RoleMember, w.acme, w.web), w.as(api.RoleMember, w.other, w.theirs)
	made := map[string]string{}
	for _, name := range []string{"train-2", "db", "train-1"} {
		in := must(t, ret(w.instance(member, name))).v
		made[name] = in.Meta.ID
	}
	names := func(c *client.API, q client.Query) (found []string) {
		t.Helper()
		for in, err := range client.Of[api.Instance](c).All(t.Context(), q) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, in.Meta.Name)
		}
		return found
	}
	for _, limit := range []int{0, 1} {
		for _, c := range []struct {
			who  *client.API
			q    client.Query
			want []string
		}{
			{member, client.Query{Search: " TRAIN "}, []string{"train-1", "train-2"}},
			{member, client.Query{Search: made["db"]}, []string{"db"}},
			{member, client.Query{Sort: api.SortName}, []string{"db", "train-1", "train-2"}},
			{w.op, client.Query{Search: "train", Project: w.web}, []string{"train-1", "train-2"}},
			{w.op, client.Query{Search: "train", Project: w.theirs}, nil},
			{stranger, client.Query{Search: "train"}, nil},
			{stranger, client.Query{Search: made["db"]}, nil},
		} {
			c.q.Limit = limit
			if got := names(c.who, c.q); !slices.Equal(got, c.want) {
				t.Errorf("search with %+v = %q, want %q", c.q, got, c.want)
			}
		}
	}
	// A public image of the cluster is found, as it is listed.
	page, err := client.Of[api.Image](stranger).Page(t.Context(), client.Query{Search: "deb"})
	if must(t, page, err); len(page.Items) != 1 {
		t.Errorf("public images found by another organization = %v, want one", page.Items)
	}
	for field, q := range map[string]client.Query{"search": {Search: strings.Repeat("x", 129)}, "sort": {Sort: "age"}, "continue": {Sort: api.SortName, Continue: "?"}} {
		_, err := client.Of[api.Instance](member).Page(t.Context(), q)
		wantErr(t, err, api.CodeInvalid, field)
	}
}
