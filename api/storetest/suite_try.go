package storetest

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// testTry tries batches of many kinds before it applies them: a try returns what
// applying the batch then returns, and leaves everything unchanged.
func testTry(t *tester) {
	volume := func(id string, uses api.Amounts) api.Command { return using(id, "prj-1", uses) }
	named := volume("vol-5", nil)
	named.Name = "vol-1"
	claimed := volume("vol-5", nil)
	claimed.Claims = []string{"mac/1"}
	raised := volume("vol-6", nil)
	raised.Event = &api.CommandEvent{Type: "budget.reached", Organization: "org-1", Data: json.RawMessage(`{}`)}
	dangling := thing(api.KindVolume, "vol-7", api.VolumeSpec{Snapshot: "snap-none"})
	taken := volume("vol-1", api.Amounts{"a": 5})
	taken.Claims = []string{"mac/1"}
	unexpected := volume("vol-1", nil)
	unexpected.Expect = 12345
	hour := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	record := api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-1", Organization: "org-1", Project: "prj-1",
		Data: api.Encode(api.UsageRecordSpec{Meter: "vcpu-seconds", Resource: "ins-1", Quantity: 1, Start: hour, End: hour.Add(time.Minute)})}
	note := &api.AuditNote{Actor: "key-1", Name: "ann", Role: api.RoleMember, Operation: "DoIt"}

	for i, c := range []struct {
		what string
		b    api.Batch
	}{
		{"scopes", api.Batch{Commands: []api.Command{holding(api.KindOrganization, "org-1", "", api.Amounts{"a": 10}), holding(api.KindProject, "prj-1", "org-1", api.Amounts{"a": 7})}}},
		{"a new object", api.Batch{Commands: []api.Command{taken}, Audit: note}},
		{"the same again", api.Batch{Commands: []api.Command{taken}, Audit: note}},
		{"over the quota", api.Batch{Commands: []api.Command{volume("vol-2", nil), volume("vol-3", api.Amounts{"a": 3})}}},
		{"a name that is taken", api.Batch{Commands: []api.Command{named}}},
		{"a claim that is taken", api.Batch{Commands: []api.Command{claimed}}},
		{"another revision", api.Batch{Commands: []api.Command{unexpected}}},
		{"a reference to nothing", api.Batch{Commands: []api.Command{dangling}, Strict: true}},
		{"a status", api.Batch{Commands: []api.Command{{Op: api.OpReport, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision, Data: json.RawMessage(`{ "phase": "Ready" }`)}}}},
		{"an event", api.Batch{Commands: []api.Command{raised}, Audit: note}},
		{"with an id", api.Batch{ID: "batch-1", Commands: []api.Command{volume("vol-8", nil)}}},
		{"an id that was applied", api.Batch{ID: "batch-1", Commands: []api.Command{volume("vol-9", nil)}}},
		{"usage", api.Batch{Commands: []api.Command{record}}},
		{"a kind without a name", api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: "", ID: "x"}}}},
		{"a delete", api.Batch{Commands: []api.Command{deleting("vol-1")}, Audit: note}},
		{"a delete of nothing", api.Batch{Commands: []api.Command{deleting("vol-none")}}},
		{"nothing", api.Batch{}},
	} {
		c.b.At = at(i + 1)
		before := t.everything()
		var events <-chan api.Event // a watch from 0 would begin with all objects
		if before.Revision > 0 {
			events = t.watch(before.Revision)
		}
		tried, tryErr := t.s.Try(t.ctx, c.b)
		if diff := cmp.Diff(before, t.everything()); diff != "" {
			t.Fatalf("%s: a try changed the store (-before +after):\n%s", c.what, diff)
		}
		did, err := t.s.Apply(t.ctx, c.b)
		if (err == nil) != (tryErr == nil) || err != nil && (api.CodeOf(err) != api.CodeOf(tryErr) || err.Error() != tryErr.Error()) {
			t.Errorf("%s: error of the try = %v, of applying it = %v; want the same", c.what, tryErr, err)
		}
		if a, b := mustJSON(t, tried), mustJSON(t, did); a != b {
			t.Errorf("%s: answers differ:\n  tried %s\napplied %s", c.what, a, b)
		}
		// The first event of a watch is what was applied, at the next revision.
		if was := before.Revision; events != nil && t.s.Revision() > was {
			if e := t.next(events); e.Revision != was+1 {
				t.Errorf("%s: the first event has revision %d, want %d", c.what, e.Revision, was+1)
			}
		}
	}
}

// everything is the part of a store's content that a try could change.
type everything struct {
	Revision         int64
	Objects          map[api.Kind][]api.Object
	Audit            []api.AuditEvent
	Events           []api.WebhookEvent
	Records          []api.UsageRecord
	Use              []api.Use
	OfOrg, OfProject api.Amounts
}

func (t *tester) everything() everything {
	t.Helper()
	out := everything{Revision: t.s.Revision(), Objects: map[api.Kind][]api.Object{}}
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []api.Kind{api.KindOrganization, api.KindProject, api.KindVolume} {
		p, err := t.s.List(t.ctx, api.ListQuery{Kind: kind, Limit: 100})
		fail(err)
		out.Objects[kind] = p.Items
	}
	audit, err := t.s.Audit(t.ctx, api.AuditQuery{Limit: 100})
	fail(err)
	events, err := t.s.Events(t.ctx, api.EventQuery{Limit: 100})
	fail(err)
	records, err := t.s.Records(t.ctx, api.RecordQuery{Limit: 100})
	fail(err)
	use, err := t.s.Use(t.ctx, api.UseQuery{Organization: "org-1", Limit: 100})
	fail(err)
	out.Audit, out.Events, out.Records, out.Use = audit.Items, events.Items, records.Items, use.Items
	org, err := t.s.Sums(t.ctx, api.KindOrganization, "org-1")
	fail(err)
	project, err := t.s.Sums(t.ctx, api.KindProject, "prj-1")
	fail(err)
	out.OfOrg, out.OfProject = maps.Clone(org), maps.Clone(project)
	return out
}
