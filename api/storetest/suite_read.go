package storetest

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

func ids(page api.ListPage) []string {
	var out []string
	for _, o := range page.Items {
		out = append(out, o.Meta.ID)
	}
	return out
}

func testListFilters(t *tester) {
	n := 0
	put := func(kind api.Kind, id, name, org, project string) {
		n++
		t.must(n, api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: name, Organization: org, Project: project, Data: api.Encode(struct{}{})})
	}
	put(api.KindVolume, "vol-4", "a", "org-2", "prj-3")
	put(api.KindVolume, "vol-2", "b", "org-1", "prj-1")
	put(api.KindVolume, "vol-1", "a", "org-1", "prj-1")
	put(api.KindVolume, "vol-3", "a", "org-1", "prj-2")
	put(api.KindImage, "img-1", "a", "org-1", "prj-1")
	for _, c := range []struct {
		q    api.ListQuery
		want []string
	}{
		{api.ListQuery{}, []string{"vol-1", "vol-2", "vol-3", "vol-4"}},
		{api.ListQuery{Organization: "org-1"}, []string{"vol-1", "vol-2", "vol-3"}},
		{api.ListQuery{Project: "prj-1"}, []string{"vol-1", "vol-2"}},
		{api.ListQuery{Name: "a"}, []string{"vol-1", "vol-3", "vol-4"}},
		{api.ListQuery{Organization: "org-1", Name: "a"}, []string{"vol-1", "vol-3"}},
		{api.ListQuery{Organization: "org-2", Project: "prj-1"}, nil},
		{api.ListQuery{Name: "none"}, nil},
	} {
		c.q.Kind, c.q.Limit = api.KindVolume, 1000
		page, err := t.s.List(t.ctx, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(page); !slices.Equal(got, c.want) || page.Continue != "" || page.Revision != t.s.Revision() {
			t.Errorf("list %+v = %v (continue %q, revision %d), want %v", c.q, got, page.Continue, page.Revision, c.want)
		}
	}
	page, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindVolume, Name: "b", Limit: 10})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("volumes named b = %v, error %v; want one", page, err)
	}
	same(t, "listed", page.Items[0], t.get(api.KindVolume, "vol-2"))
	for _, limit := range []int{0, -1, 1001} {
		_, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindVolume, Limit: limit})
		t.wantCode(api.CodeInvalid, err)
	}
}

func testListSearch(t *tester) {
	put := func(n int, id, name, org, project string, claims ...string) {
		t.must(n, api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: name, Organization: org, Project: project, Data: api.Encode(struct{}{}), Claims: claims})
	}
	put(1, "ins-4", "web-1", "org-2", "prj-3", "ip/net-2/10.0.0.5", "mac/02:00:0a:00:00:05")
	put(2, "ins-2", "db", "org-1", "prj-1", "ip/net-1/10.0.0.5")
	put(3, "ins-1", "web-1", "org-1", "prj-1", "ip/net-1/10.0.0.50", "ip/net-1/fd00::7")
	put(4, "ins-3", "Andweb", "org-1", "prj-2", "ip/net-1/110.0.0.5")
	for _, c := range []struct {
		q    api.ListQuery
		want []string
	}{
		{api.ListQuery{ByName: true}, []string{"ins-3", "ins-2", "ins-1", "ins-4"}},
		{api.ListQuery{ByName: true, Name: "web-1"}, []string{"ins-1", "ins-4"}},
		{api.ListQuery{ByName: true, Organization: "org-1"}, []string{"ins-3", "ins-2", "ins-1"}},
		{api.ListQuery{Search: "web"}, []string{"ins-3", "ins-1", "ins-4"}},
		{api.ListQuery{Search: "web", Project: "prj-1"}, []string{"ins-1"}},
		{api.ListQuery{Search: "and"}, []string{"ins-3"}},
		{api.ListQuery{Search: "ins-2"}, []string{"ins-2"}},
		{api.ListQuery{Search: "10.0.0.5"}, []string{"ins-2", "ins-1", "ins-4"}},
		{api.ListQuery{Search: "10.0.0.50"}, []string{"ins-1"}},
		{api.ListQuery{Search: "fd00:"}, []string{"ins-1"}},
		{api.ListQuery{Search: "02:00:0a"}, nil}, // a MAC address is not searched
		{api.ListQuery{Search: "net-1"}, nil},
		{api.ListQuery{Search: "org-1"}, nil},
		{api.ListQuery{Search: "\x00"}, nil},
	} {
		for _, limit := range []int{1, 2, 1000} {
			q := c.q
			q.Kind, q.Limit = api.KindInstance, limit
			var got []string
			for {
				page, err := t.s.List(t.ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, ids(page)...)
				if q.Continue = page.Continue; q.Continue == "" || len(got) > 10 {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("search %+v with limit %d = %q, want %q", c.q, limit, got, c.want)
			}
		}
	}
	// When the last object of a page is removed or renamed, the next page continues
	// after its position.
	q := api.ListQuery{Kind: api.KindInstance, Search: "web", Limit: 2}
	page, err := t.s.List(t.ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	t.must(5, api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision})
	q.Continue = page.Continue
	if page, err = t.s.List(t.ctx, q); err != nil || !slices.Equal(ids(page), []string{"ins-4"}) {
		t.Errorf("page after a removed object = %q, error %v; want ins-4", ids(page), err)
	}
	_, err = t.s.List(t.ctx, api.ListQuery{Kind: api.KindInstance, ByName: true, Limit: 1, Continue: "?"})
	t.wantCode(api.CodeInvalid, err)
}

func testListPages(t *tester) {
	const total = 25
	var cmds []api.Command
	var want []string
	for i := range total {
		c := flavor(fmt.Sprintf("flv-%02d", i), fmt.Sprintf("n%d", i), 1, 0)
		c.Organization = []string{"org-1", "org-2"}[i%2]
		cmds = append(cmds, c)
		if i%2 == 0 {
			want = append(want, c.ID)
		}
	}
	if _, err := t.apply(1, cmds...); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 4, 12, 13, 14} {
		var got []string
		q := api.ListQuery{Kind: api.KindFlavor, Organization: "org-1", Limit: limit}
		for pages := 0; ; pages++ {
			page, err := t.s.List(t.ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > limit || pages > total {
				t.Fatalf("page %d with limit %d has %d objects, want at most the limit and at most %d pages", pages, limit, len(page.Items), total)
			}
			got = append(got, ids(page)...)
			if page.Continue == "" {
				break
			}
			q.Continue = page.Continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("list with limit %d = %v, want %v", limit, got, want)
		}
	}
	// An object removed between two pages is missing, all others are listed once.
	first, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"flv-09", "flv-12"} { // the last of the first page, and one of the next
		t.must(2, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: id, Expect: api.AnyRevision})
	}
	second, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindFlavor, Limit: 1000, Continue: first.Continue})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(second); len(got) != total-11 || got[0] != "flv-10" || slices.Contains(got, "flv-12") {
		t.Errorf("second page = %v, want %d objects from flv-10 on without flv-12", got, total-11)
	}
}
