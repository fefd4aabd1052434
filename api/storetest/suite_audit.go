package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
		t.Error("a batch that deletes a missing volume was accepted, want an error")
	}
	page, err := t.s.Audit(t.ctx, api.AuditQuery{Limit: 100})
	if err != nil || page.More || len(page.Items) != 5 {
		t.Fatalf("audit log has %d events, more %v, error %v; want 5", len(page.Items), page.More, err)
	}
	before := api.AuditEvent{}
	for i, e := range page.Items {
		if !e.Follows(before) || e.Seal == "" {
			t.Errorf("event %d does not follow the one before, or has no seal: %+v", i, e)
		}
		if changed := e; i > 0 {
			changed.Actor = "key-2"
			if changed.Follows(before) || e.Follows(api.AuditEvent{Seq: before.Seq}) {
				t.Errorf("a changed or moved event %d follows the one before, want it detected", i)
			}
		}
		before = e
	}
	first := page.Items[0]
	if diff := cmp.Diff(api.AuditEvent{Seq: 1, At: at(1), Actor: "key-1", Name: "ann", Role: api.RoleMember, From: "192.0.2.1", Operation: "DoIt",
		Organization: "org-1", Project: "prj-1", Previous: first.Previous, Hash: first.Hash, Seal: first.Seal, Objects: []api.AuditObject{
			{Kind: api.KindVolume, ID: "vol-1", Name: "vol-1", Revision: 1}, {Kind: api.KindVolume, ID: "vol-2", Name: "vol-2", Revision: 2}}}, first); diff != "" {
		t.Errorf("first event: mismatch:\n%s", diff)
	}
	if e := page.Items[1]; len(e.Objects) != api.MaxAuditObjects || e.More != 3 || e.Organization != "org-2" {
		t.Errorf("event of a large batch names %d objects and %d more of %s, want %d and 3 of org-2", len(e.Objects), e.More, e.Organization, api.MaxAuditObjects)
	}
	if e := page.Items[2]; !e.Objects[0].Removed {
		t.Errorf("event of a removal = %+v, want its object marked removed", e)
	}
	if p, o := page.Items[3], page.Items[4]; p.Project != "prj-9" || o.Organization != "org-9" {
		t.Errorf("event of a new project is of project %s, that of an organization of %s; want prj-9 and org-9", p.Project, o.Organization)
	}

	// All pages, in both directions, of one organization and of all.
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
				t.Errorf("events of %q, newest %v, limit %d = %v, want %v", c.organization, c.newest, limit, got, c.want)
			}
		}
	}
	_, err = t.s.Audit(t.ctx, api.AuditQuery{})
	t.wantCode(api.CodeInvalid, err)
}

// testAuditFilters checks that the pages of a filter together contain exactly the
// matching events for every page size, and that no page examines more than the limit.
func testAuditFilters(t *tester) {
	const many = api.MaxAuditScan + 50
	rare := map[int]api.AuditNote{7: {Actor: "key-1", Name: "Ann@example.com", Operation: "StopInstance"}, 20: {Actor: "ses-1", Name: "Ann@example.com", Operation: "Login"}}
	for i := 1; i <= many; i++ {
		note := api.AuditNote{Actor: "key-9", Name: "bob", Operation: "UpdateVolume"}
		if n, ok := rare[i]; ok {
			note = n
		}
		id := fmt.Sprintf("vol-%d", i%5)
		cmds := []api.Command{{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: "data-" + id, Organization: "org-1", Project: "prj-1", Expect: api.AnyRevision, Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}}
		when := time.Duration(i) * time.Minute
		if i == 31 { // by a node whose clock is behind
			when -= 20 * time.Minute
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision})
		}
		if _, err := t.s.Apply(t.ctx, api.Batch{ID: fmt.Sprint("b", i), At: at(0).Add(when), Commands: cmds, Audit: &note}); err != nil {
			t.Fatal(err)
		}
	}
	minute := func(n int) time.Time { return at(0).Add(time.Duration(n) * time.Minute) }
	for name, c := range map[string]struct {
		only api.AuditFilter
		want []int64
	}{
		"by id":           {api.AuditFilter{Actor: "key-1"}, []int64{7}},
		"by name":         {api.AuditFilter{Actor: "ann@EXAMPLE.com"}, []int64{7, 20}},
		"what":            {api.AuditFilter{Operation: "login"}, []int64{20}},
		"who and what":    {api.AuditFilter{Actor: "key-1", Operation: "Login"}, nil},
		"removed":         {api.AuditFilter{Removed: true, Kind: api.KindVolume}, []int64{31}},
		"removed another": {api.AuditFilter{Removed: true, Object: "vol-2"}, nil},
		"between":         {api.AuditFilter{From: minute(2), To: minute(4)}, []int64{2, 3}},
		"with a late one": {api.AuditFilter{From: minute(11), To: minute(12)}, []int64{11, 31}},
		"of an object":    {api.AuditFilter{Object: "data-vol-3", To: minute(10)}, []int64{3, 8}},
		"none of a kind":  {api.AuditFilter{Kind: api.KindInstance}, nil},
		"far ahead":       {api.AuditFilter{From: minute(1e6)}, nil},
		"long ago":        {api.AuditFilter{To: minute(-1e6)}, nil},
		"backwards":       {api.AuditFilter{From: minute(9), To: minute(3)}, nil},
	} {
		for _, organization := range []string{"", "org-1"} {
			for _, newest := range []bool{false, true} {
				for _, limit := range []int{1, 2, 1000} {
					want := slices.Clone(c.want)
					if newest {
						slices.Reverse(want)
					}
					got, calls := t.allAudit(api.AuditQuery{Organization: organization, Newest: newest, Limit: limit, Only: c.only})
					if !slices.Equal(got, want) || calls > len(want)+3 {
						t.Errorf("filter %s, organization %q, newest %v, limit %d = %v in %d calls, want %v", name, organization, newest, limit, got, calls, want)
					}
				}
			}
		}
	}
	p, err := t.s.Audit(t.ctx, api.AuditQuery{Limit: 10, Only: api.AuditFilter{Actor: "nobody"}})
	if err != nil || len(p.Items) != 0 || !p.More || p.Last != api.MaxAuditScan {
		t.Errorf("page without matches: %d items, last %d, more %v, error %v; want it to end at %d with more", len(p.Items), p.Last, p.More, err, api.MaxAuditScan)
	}
}

// allAudit reads all pages of a query.
func (t *tester) allAudit(q api.AuditQuery) (seqs []int64, calls int) {
	t.Helper()
	for {
		p, err := t.s.Audit(t.ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		calls++
		for _, e := range p.Items {
			seqs = append(seqs, e.Seq)
		}
		if !p.More {
			return seqs, calls
		}
		if q.After = p.Last; p.Last == 0 || calls > 1000 {
			t.Fatalf("pages do not end: %d calls, last %d", calls, p.Last)
		}
	}
}
