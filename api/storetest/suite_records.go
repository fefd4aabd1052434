package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// recorded reads all pages of records.
func (t *tester) recorded(q api.RecordQuery) (all []api.UsageRecord) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = api.MaxRecords
	}
	for {
		page, err := t.s.Records(t.ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > q.Limit || page.More && page.Next.Compare(q.After) <= 0 {
			t.Fatalf("page of %d records after %v continues after %v, more %v; want at most %d records and progress", len(page.Items), q.After, page.Next, page.More, q.Limit)
		}
		all = append(all, page.Items...)
		if !page.More {
			return all
		}
		q.After = page.Next
	}
}

func idsOf(all []api.UsageRecord) string {
	var ids []string
	for _, r := range all {
		ids = append(ids, r.Meta.ID)
	}
	return strings.Join(ids, " ")
}

func testRecord(t *tester) {
	end := at(0).Add(123456789 * time.Nanosecond)
	c := recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, end, 5)
	o := t.must(1, c)
	if o.Kind != api.KindUsageRecord || o.Meta.ID != "use-1" || o.Meta.Organization != "org-1" || o.Meta.Project != "prj-org-1" || o.Meta.Revision != 0 {
		t.Errorf("answer to a record = %s, want its kind, ID and owner", mustJSON(t, o))
	}
	want := api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: "use-1", Name: "use-1", Organization: "org-1", Project: "prj-org-1", CreatedAt: at(1)},
		Spec: api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", ResourceName: "name of ins-1", Start: end.Add(-time.Minute), End: end, Quantity: 5}}
	there := func(what string) {
		t.Helper()
		if all := t.recorded(api.RecordQuery{}); len(all) != 1 || mustJSON(t, all[0]) != mustJSON(t, want) {
			t.Errorf("records after %s = %s, want %s", what, mustJSON(t, all), mustJSON(t, want))
		}
		if use := t.used(api.UseQuery{Organization: "org-1"}); len(use) != 1 || use[0].Quantity != 5 {
			t.Errorf("use after %s = %v, want 5", what, use)
		}
	}
	there("recorded")
	same(t, "recorded again", t.must(2, c), o)
	there("recorded again")
	other := recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, end, 6) // same organization, end and ID: the same record
	other.Expect = 77
	t.must(3, other)
	there("recorded again with something else")
	if _, err := t.apply(4, c, other, c); err != nil {
		t.Fatal(err)
	}
	there("recorded again and again in a batch")
	if r := t.s.Revision(); r != 0 {
		t.Errorf("revision after records = %d, want 0", r)
	}
	// A record is not an object.
	t.gone(api.KindUsageRecord, "use-1")
	if page, err := t.s.List(t.ctx, api.ListQuery{Kind: api.KindUsageRecord, Limit: 10}); err != nil || len(page.Items) != 0 {
		t.Errorf("list of records as objects = %v, error %v; want none", page.Items, err)
	}
	// Among other commands, each gets its own answer.
	out, err := t.apply(5, flavor("flv-1", "a", 1, 0), recordOf("use-2", "org-1", "ins-1", api.MeterVCPU, end, 1), flavor("flv-2", "b", 1, 0), flavor("flv-3", "c", 1, 0),
		recordOf("use-3", "org-1", "ins-1", api.MeterVCPU, end, 1), recordOf("use-4", "org-2", "ins-1", api.MeterVCPU, end, 1))
	got := ""
	for _, o := range out {
		got += o.Meta.ID + " "
	}
	if err != nil || got != "flv-1 use-2 flv-2 flv-3 use-3 use-4 " {
		t.Errorf("answers = %s, error %v; want one per command in order", got, err)
	}
	if all := idsOf(t.recorded(api.RecordQuery{})); all != "use-1 use-2 use-3 use-4" {
		t.Errorf("records = %s, want use-1 to use-4", all)
	}
	// A repeated batch gets the same answer.
	b := api.Batch{ID: "b", At: at(6), Commands: []api.Command{flavor("flv-4", "d", 1, 0), recordOf("use-5", "org-1", "ins-1", api.MeterVCPU, end, 1)}}
	first, err := t.s.Apply(t.ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := t.s.Apply(t.ctx, b)
	if err != nil || mustJSON(t, first) != mustJSON(t, again) {
		t.Errorf("answer of a batch = %v, repeated = %v, error %v; want the same", first, again, err)
	}
}

func testBadRecords(t *tester) {
	for name, spoil := range map[string]func(*api.UsageRecordSpec){
		"no meter":             func(s *api.UsageRecordSpec) { s.Meter = "" },
		"no resource":          func(s *api.UsageRecordSpec) { s.Resource = "" },
		"a zero byte":          func(s *api.UsageRecordSpec) { s.Resource = "ins\x003" },
		"a negative quantity":  func(s *api.UsageRecordSpec) { s.Quantity = -1 },
		"no end":               func(s *api.UsageRecordSpec) { s.End = time.Time{} },
		"an end of before":     func(s *api.UsageRecordSpec) { s.End = s.Start.Add(-1) },
		"before there is time": func(s *api.UsageRecordSpec) { s.Start = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) },
		"far ahead":            func(s *api.UsageRecordSpec) { s.End = time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC) },
		"a long name":          func(s *api.UsageRecordSpec) { s.ResourceName = strings.Repeat("x", 1000) },
	} {
		s := api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", Start: at(0), End: at(1), Quantity: 1}
		spoil(&s)
		_, err := t.apply(1, recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, at(1), 1),
			api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-2", Organization: "org-1", Data: api.Encode(s)})
		if err == nil || api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%s: error %v, want %s", name, err, api.CodeInvalid)
		}
	}
	for _, raw := range []string{"", "{", `"x"`, `{"end":5}`} {
		t.fails(api.CodeInvalid, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-1", Data: json.RawMessage(raw)})
	}
	for _, op := range []api.Op{api.OpPutSpec, api.OpAssign, api.OpReport, api.OpDelete, api.OpForget} {
		t.fails(api.CodeInvalid, api.Command{Op: op, Kind: api.KindUsageRecord, ID: "use-1", Expect: api.AnyRevision, Data: json.RawMessage(`{}`)})
	}
	if all := t.recorded(api.RecordQuery{}); len(all) != 0 {
		t.Errorf("records after invalid commands = %v, want none", all)
	}
}

// testRecordsInOrder checks that records are listed in the order of their ends,
// whatever the order of recording, and that filters match.
func testRecordsInOrder(t *tester) {
	hour := time.Date(2026, 2, 28, 23, 0, 0, 0, time.UTC)
	late := recordOf("use-5", "org-1", "ins-2", api.MeterVCPU, hour.Add(time.Minute), 1)
	for i, c := range []api.Command{
		recordOf("use-4", "org-1", "ins-1", api.MeterVCPU, hour.Add(2*time.Hour), 1),
		recordOf("use-3", "org-1", "ins-1", api.MeterVCPU, hour.Add(time.Hour), 1),
		recordOf("use-2", "org-1", "ins-1", api.MeterGPU, hour.Add(time.Hour), 1),
		recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, hour.Add(time.Hour+1), 1),
		recordOf("use-6", "org-1", "ins-1", api.MeterVCPU, hour, 1),
		recordOf("use-7", "org-2", "ins-1", api.MeterVCPU, hour.Add(time.Minute), 1),
		recordOf("use-8", "org", "ins-1", api.MeterVCPU, hour.Add(time.Minute), 1),
		late,
	} {
		t.must(i+1, c)
	}
	for _, c := range []struct {
		q    api.RecordQuery
		want string
	}{
		{api.RecordQuery{}, "use-8 use-6 use-5 use-2 use-3 use-1 use-4 use-7"},
		{api.RecordQuery{Organization: "org-1"}, "use-6 use-5 use-2 use-3 use-1 use-4"},
		{api.RecordQuery{Organization: "org-2"}, "use-7"},
		{api.RecordQuery{Organization: "org"}, "use-8"},
		{api.RecordQuery{Organization: "org-3"}, ""},
		{api.RecordQuery{Organization: "org-1", From: hour, To: hour.Add(time.Hour)}, "use-5 use-2 use-3"}, // those of the hour
		{api.RecordQuery{From: hour, To: hour.Add(time.Hour)}, "use-8 use-5 use-2 use-3 use-7"},
		{api.RecordQuery{From: hour.Add(time.Hour)}, "use-1 use-4"},
		{api.RecordQuery{To: hour}, "use-6"},
		{api.RecordQuery{Organization: "org-1", Meter: api.MeterGPU}, "use-2"},
		{api.RecordQuery{Organization: "org-1", Resource: "ins-2"}, "use-5"},
		{api.RecordQuery{Project: "prj-org-2"}, "use-7"},
		{api.RecordQuery{Organization: "org-1", Project: "prj-org-2"}, ""},
		{api.RecordQuery{ID: "use-3"}, "use-3"},
	} {
		for limit := 1; limit < 10; limit++ {
			q := c.q
			q.Limit = limit
			if got := idsOf(t.recorded(q)); got != c.want {
				t.Errorf("records %+v = %s, want %s", q, got, c.want)
			}
		}
	}
	if all := t.recorded(api.RecordQuery{Organization: "org-1", Resource: "ins-2"}); !all[0].Meta.CreatedAt.Equal(at(8)) {
		t.Errorf("record was created at %s, want %s", all[0].Meta.CreatedAt, at(8))
	}
	for _, q := range []api.RecordQuery{{}, {Limit: api.MaxRecords + 1}, {Limit: 1, Organization: "o\x00"},
		{Limit: 1, Organization: "org-1", After: api.RecordPlace{Organization: "org-2", End: hour, ID: "use-7"}}} {
		_, err := t.s.Records(t.ctx, q)
		t.wantCode(api.CodeInvalid, err)
	}
}

// testRecordsPages checks, with many records of the same end, that each page continues
// where the previous one ended, even if records are added meanwhile.
func testRecordsPages(t *tester) {
	var cmds []api.Command
	for i := range 50 {
		cmds = append(cmds, recordOf(fmt.Sprintf("use-%02d", (i*37)%50), "org-1", fmt.Sprint("ins-", i%3), api.MeterVCPU, at(i/25), 1))
	}
	if _, err := t.apply(1, cmds...); err != nil {
		t.Fatal(err)
	}
	want := t.recorded(api.RecordQuery{Organization: "org-1"})
	if len(want) != 50 || !slices.IsSortedFunc(want, func(a, b api.UsageRecord) int { return api.PlaceOf(a).Compare(api.PlaceOf(b)) }) {
		t.Fatalf("%d records: %s; want 50 in order", len(want), idsOf(want))
	}
	for limit := 1; limit < 60; limit += 6 {
		if got := t.recorded(api.RecordQuery{Limit: limit}); idsOf(got) != idsOf(want) {
			t.Errorf("records with limit %d = %s, want %s", limit, idsOf(got), idsOf(want))
		}
	}
	q := api.RecordQuery{Organization: "org-1", Limit: 10}
	page, err := t.s.Records(t.ctx, q)
	if err != nil || !page.More || page.Next != api.PlaceOf(page.Items[9]) {
		t.Fatalf("page = %+v, error %v; want more after its last item", page, err)
	}
	again, err := api.ParseRecordPlace(page.Next.String())
	if err != nil || again != page.Next {
		t.Errorf("place %v parsed again = %v, error %v; want the same place", page.Next, again, err)
	}
	t.must(2, recordOf("use-", "org-1", "ins-1", api.MeterVCPU, at(0), 1)) // belongs to a page that was already read
	q.After = page.Next
	if page, err = t.s.Records(t.ctx, q); err != nil || page.Items[0].Meta.ID != want[10].Meta.ID {
		t.Errorf("next page = %+v, error %v; want it to start with %s", page, err, want[10].Meta.ID)
	}
}

func testRecordsExpire(t *tester) {
	day := 24 * time.Hour
	old := at(0).Add(-500 * day).Truncate(time.Hour)
	first := recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, old, 1)
	for i, c := range []api.Command{first, recordOf("use-2", "org-1", "ins-1", api.MeterVCPU, old.Add(day), 2),
		recordOf("use-3", "org-2", "ins-1", api.MeterVCPU, old, 3), recordOf("use-4", "org-1", "ins-1", api.MeterVCPU, old.Add(2*day), 4)} {
		t.must(i, c)
	}
	use := t.used(api.UseQuery{Organization: "org-1"})
	t.fails(api.CodeInvalid, api.ExpireRecords("org-1", at(99).Add(-api.MinKeepRecords+1)))
	t.fails(api.CodeInvalid, api.Command{Op: api.OpExpire, Kind: api.KindUsageRecord, ID: "records", Data: json.RawMessage(`{}`)})
	t.fails(api.CodeInvalid, api.Command{Op: api.OpExpire, Kind: api.KindUsageRecord, ID: "records", Data: json.RawMessage(`{"before":"2020-01-01T00:00:00Z","all":true}`)})
	if o := t.must(6, api.ExpireRecords("org-1", old.Add(day))); o.Meta.ID != "records" || o.Meta.Revision != 0 {
		t.Errorf("answer to an expiry = %+v, want ID records and no revision", o)
	}
	want := func(what, records string) {
		t.Helper()
		if got := idsOf(t.recorded(api.RecordQuery{})); got != records {
			t.Errorf("records after %s = %s, want %s", what, got, records)
		}
		if now := t.used(api.UseQuery{Organization: "org-1"}); !slices.Equal(now, use) {
			t.Errorf("use after %s = %v, want %v", what, now, use)
		}
	}
	want("of before, of this organization", "use-2 use-4 use-3")
	// A removed record that arrives again was already counted; a new one from before
	// the horizon is too late, whatever its organization.
	t.must(7, first)
	t.must(8, recordOf("use-9", "org-1", "ins-1", api.MeterVCPU, old.Add(day-1), 9))
	t.must(9, recordOf("use-9", "org-2", "ins-1", api.MeterVCPU, old, 9))
	want("told again", "use-2 use-4 use-3")
	if now := t.used(api.UseQuery{Organization: "org-2"}); len(now) != 1 || now[0].Quantity != 3 {
		t.Errorf("use of the other organization = %v, want 3 as before", now)
	}
	// An earlier horizon does not admit old records again.
	t.must(10, api.ExpireRecords("org-1", old))
	t.must(11, first)
	want("told again after an older horizon", "use-2 use-4 use-3")
	// Records and their expiry in one batch.
	if _, err := t.apply(12, recordOf("use-5", "org-1", "ins-1", api.MeterVCPU, old.Add(day), 5), api.ExpireRecords("org-1", old.Add(2*day))); err != nil {
		t.Fatal(err)
	}
	use = t.used(api.UseQuery{Organization: "org-1"})
	if sum := use[1].Quantity; sum != 7 {
		t.Errorf("use with a record that expired in the same batch = %v, want 7", sum)
	}
	want("in one batch", "use-4 use-3")
	t.must(13, api.ExpireRecords("org-9", old.Add(2*day)))
	want("of nobody", "use-4 use-3")
	if r := t.s.Revision(); r != 0 {
		t.Errorf("revision after records and expiries = %d, want 0", r)
	}
}

// testRecordsExpireInParts checks that many records are removed in several steps, the
// oldest first, and that the sums are kept.
func testRecordsExpireInParts(t *tester) {
	old := at(0).Add(-500 * 24 * time.Hour)
	const all = 10_000
	for n := 0; n < all; n += 1000 {
		var cmds []api.Command
		for i := n; i < n+1000; i++ {
			cmds = append(cmds, recordOf(fmt.Sprintf("use-%05d", i), "org-1", "ins-1", api.MeterVCPU, old.Add(time.Duration(i+1)), 1))
		}
		if _, err := t.apply(1, cmds...); err != nil {
			t.Fatal(err)
		}
	}
	left := all
	for steps := 1; left > 0; steps++ {
		t.must(2, api.ExpireRecords("org-1", old.Add(time.Hour)))
		now := t.recorded(api.RecordQuery{Organization: "org-1"})
		if gone := left - len(now); steps > 10 || gone < min(left, 1000) || len(now) > 0 && now[0].Meta.ID != fmt.Sprintf("use-%05d", all-len(now)) {
			t.Fatalf("step %d removed %d of %d records, want the oldest, at least 1000, within 10 steps", steps, gone, left)
		}
		left = len(now)
	}
	if use := t.used(api.UseQuery{Organization: "org-1"}); len(use) != 1 || use[0].Quantity != all {
		t.Errorf("use after all records expired = %v, want %d", use, all)
	}
}
