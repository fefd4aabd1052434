package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

func testAuditTrail(t *tester) {
	note := &api.AuditNote{Actor: "key-1", Name: "ann", Role: api.RoleMember, From: "192.0.2.1", Operation: "DoIt"}
	apply := func(n int, id string, note *api.AuditNote, cmds ...api.Command) error {
		_, err := t.s.Apply(t.ctx, api.Batch{ID: id, At: at(n), Commands: cmds, Audit: note})
		return err
	}
	volume := func(id, organization string) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Organization: organization, Project: "prj-1",
			Expect: api.AnyRevision, Data: json.RawMessage(`{}`)}
	}
	var many []api.Command
	for i := range api.MaxAuditObjects + 3 {
		many = append(many, volume(fmt.Sprint("vol-m", i), "org-2"))
	}
	for _, err := range []error{
		apply(1, "a", note, volume("vol-1", "org-1"), volume("vol-2", "org-1")),
		apply(2, "a", note, volume("vol-1", "org-1"), volume("vol-2", "org-1")), // a retry
		apply(3, "b", note, volume("vol-1", "org-1")),                           // changes nothing
		apply(4, "c", nil, volume("vol-3", "org-1")),                            // the cluster itself
		apply(5, "d", note, many...),
		apply(6, "e", note, deleting("vol-1")),
		apply(7, "f", note, holding(api.KindProject, "prj-9", "org-1", nil)),
		apply(8, "g", note, holding(api.KindOrganization, "org-9", "org-1", nil)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := apply(9, "h", note, volume("vol-4", "org-1"), api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-none"}); err == nil {
		t.Error("it was not refused")
	}
	page, err := t.s.Audit(t.ctx, api.AuditQuery{Limit: 100})
	if err != nil || page.More || len(page.Items) != 5 {
		t.Fatalf("%d events, %v, %v", len(page.Items), page.More, err)
	}
	before := api.AuditEvent{}
	for i, e := range page.Items {
		if !e.Follows(before) {
			t.Errorf("event %d does not follow: %+v", i, e)
		}
		if changed := e; i > 0 {
			changed.Actor = "key-2"
			if changed.Follows(before) || e.Follows(api.AuditEvent{Seq: before.Seq}) {
				t.Errorf("event %d can be changed", i)
			}
		}
		before = e
	}
	first := page.Items[0]
	if diff := cmp.Diff(api.AuditEvent{Seq: 1, At: at(1), Actor: "key-1", Name: "ann", Role: api.RoleMember, From: "192.0.2.1", Operation: "DoIt",
		Organization: "org-1", Project: "prj-1", Previous: first.Previous, Hash: first.Hash, Objects: []api.AuditObject{
			{Kind: api.KindVolume, ID: "vol-1", Name: "vol-1", Revision: 1}, {Kind: api.KindVolume, ID: "vol-2", Name: "vol-2", Revision: 2}}}, first); diff != "" {
		t.Error(diff)
	}
	if e := page.Items[1]; len(e.Objects) != api.MaxAuditObjects || e.More != 3 || e.Organization != "org-2" {
		t.Errorf("%d objects and %d more of %s", len(e.Objects), e.More, e.Organization)
	}
	if e := page.Items[2]; !e.Objects[0].Removed {
		t.Errorf("%+v", e)
	}
	if p, o := page.Items[3], page.Items[4]; p.Project != "prj-9" || o.Organization != "org-9" {
		t.Errorf("a project's event is of %s, an organization's of %s", p.Project, o.Organization)
	}

	// Page by page, both ways, of one organization and of all.
	for _, c := range []struct {
		organization string
		newest       bool
		want         []int64
	}{{"", false, []int64{1, 2, 3, 4, 5}}, {"", true, []int64{5, 4, 3, 2, 1}}, {"org-1", false, []int64{1, 3, 4}}, {"org-1", true, []int64{4, 3, 1}},
		{"org-2", true, []int64{2}}, {"org", true, nil}, {"org-3", false, nil}} {
		for limit := 1; limit < 7; limit++ {
			var got []int64
			q := api.AuditQuery{Organization: c.organization, Newest: c.newest, Limit: limit}
			for more := true; more; {
				p, err := t.s.Audit(t.ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range p.Items {
					got = append(got, e.Seq)
					q.After = e.Seq
				}
				more = p.More
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, newest %v, by %d: %v, want %v", c.organization, c.newest, limit, got, c.want)
			}
		}
	}
	_, err = t.s.Audit(t.ctx, api.AuditQuery{})
	t.wantCode(api.CodeInvalid, err)
}
