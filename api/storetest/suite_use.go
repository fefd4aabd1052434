package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// recordOf returns the command that records use that ended then.
func recordOf(id, org, resource string, m api.Meter, end time.Time, quantity int64) api.Command {
	return api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: id, Name: id, Organization: org, Project: "prj-" + org,
		Data: api.Encode(api.UsageRecordSpec{Meter: m, Resource: resource, ResourceName: "name of " + resource, Start: end.Add(-time.Minute), End: end, Quantity: quantity})}
}

// used reads all pages of use.
func (t *tester) used(q api.UseQuery) (all []api.Use) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = api.MaxUse
	}
	for {
		page, err := t.s.Use(t.ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Items) > q.Limit || page.More && len(page.Items) == 0 {
			t.Fatalf("page of %d items with limit %d, more %v; want it within the limit, and not empty if more follows", len(page.Items), q.Limit, page.More)
		}
		all = append(all, page.Items...)
		if !page.More {
			return all
		}
		q.After = page.Items[len(page.Items)-1]
	}
}

func testUse(t *tester) {
	hour := time.Date(2028, 2, 29, 23, 0, 0, 0, time.UTC) // the last hour of February in a leap year
	late := recordOf("use-5", "org-1", "ins-1", api.MeterVCPU, hour.Add(40*time.Minute), 5)
	for i, c := range []api.Command{
		recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, hour.Add(time.Hour), 1), // a full hour belongs to the hour before
		recordOf("use-2", "org-1", "ins-1", api.MeterVCPU, hour.Add(time.Hour+1), 2),
		recordOf("use-3", "org-1", "ins-1", api.MeterGPU, hour.Add(1), 3),
		recordOf("use-4", "org-2", "ins-2", api.MeterVCPU, hour.Add(time.Minute), 4),
		late, late, // recorded twice
		recordOf("use-6", "org-1", "ins-1", api.MeterVCPU, hour, 6),
		recordOf("use-7", "org-1", "ins-3", api.MeterVCPU, hour.Add(1), math.MaxInt64),
		recordOf("use-8", "org-1", "ins-3", api.MeterVCPU, hour.Add(2), math.MaxInt64),
	} {
		t.must(i+1, c)
	}
	row := func(h int, m api.Meter, resource string, q int64) string {
		return fmt.Sprint(hour.Add(time.Duration(h)*time.Hour), m, "prj-org-1", resource, "name of "+resource, q)
	}
	text := func(all []api.Use) (out []string) {
		for _, u := range all {
			out = append(out, fmt.Sprint(u.Hour, u.Meter, u.Project, u.Resource, u.ResourceName, u.Quantity))
		}
		return out
	}
	want := []string{
		row(-1, api.MeterVCPU, "ins-1", 6),
		row(0, api.MeterGPU, "ins-1", 3), row(0, api.MeterVCPU, "ins-1", 6), row(0, api.MeterVCPU, "ins-3", math.MaxInt64),
		row(1, api.MeterVCPU, "ins-1", 2),
	}
	if got := text(t.used(api.UseQuery{Organization: "org-1"})); !slices.Equal(got, want) {
		t.Errorf("use = %q, want %q", got, want)
	}
	t.attributedUse(hour)
	march := hour.Add(time.Hour)
	if got := text(t.used(api.UseQuery{Organization: "org-1", From: march.AddDate(0, -1, 0), To: march})); !slices.Equal(got, want[:4]) {
		t.Errorf("use in February = %q, want %q", got, want[:4])
	}
	if got := text(t.used(api.UseQuery{Organization: "org-1", From: march})); !slices.Equal(got, want[4:]) {
		t.Errorf("use from March on = %q, want %q", got, want[4:])
	}
	if got := t.used(api.UseQuery{Organization: "org"}); len(got) != 0 {
		t.Errorf("use of an unknown organization = %v, want none", got)
	}
	renamed := recordOf("use-b", "org-1", "ins-1", api.MeterVCPU, march.Add(2), 1)
	renamed.Data = json.RawMessage(`{"meter":"vcpu-seconds","resource":"ins-1","resourceName":"new","start":"2028-03-01T00:00:00Z","end":"2028-03-01T00:30:00Z","quantity":1}`)
	t.must(20, renamed)
	if got := t.used(api.UseQuery{Organization: "org-1", From: march}); len(got) != 1 || got[0].ResourceName != "new" || got[0].Quantity != 3 {
		t.Errorf("use after a rename = %v, want the new name", got)
	}
	for _, q := range []api.UseQuery{{Limit: 1}, {Organization: "org-1"}, {Organization: "org-1", Limit: api.MaxUse + 1}} {
		_, err := t.s.Use(t.ctx, q)
		t.wantCode(api.CodeInvalid, err)
	}
}

func testUsePages(t *tester) {
	begin := time.Date(2026, 12, 31, 20, 0, 0, 0, time.UTC)
	var cmds []api.Command
	for h := range 6 {
		for i := range 5 {
			id := fmt.Sprintf("use-%d%d", h, i)
			cmds = append(cmds, recordOf(id, "org-1", fmt.Sprint("ins-", i), api.MeterVCPU, begin.Add(time.Duration(h)*time.Hour+time.Second), int64(h*10+i)))
			cmds = append(cmds, recordOf(id+"x", "org-2", fmt.Sprint("ins-", i), api.MeterVCPU, begin.Add(time.Duration(h)*time.Hour+time.Second), 1))
		}
	}
	if _, err := t.apply(1, cmds...); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 4, 5, 29, 30, 31} {
		got := t.used(api.UseQuery{Organization: "org-1", Limit: limit})
		if len(got) != 30 || !slices.IsSortedFunc(got, api.Use.Compare) {
			t.Errorf("use with limit %d = %v, want 30 items in order", limit, got)
		}
		if got = t.used(api.UseQuery{Organization: "org-1", Limit: limit, From: begin.Add(time.Hour), To: begin.Add(4 * time.Hour)}); len(got) != 15 || got[0].Quantity != 10 || got[14].Quantity != 34 {
			t.Errorf("use of three hours with limit %d = %v, want 15 items with quantities 10 to 34", limit, got)
		}
	}
}

// testUseInAnyOrder checks that the order and repetition of records do not change the
// use.
func testUseInAnyOrder(t *tester) {
	random := rand.New(rand.NewPCG(3, 4))
	begin := time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC) // includes a change from daylight saving time
	want := map[api.Meter]int64{}
	var all []api.Command
	for i := range 200 {
		m := api.Meters()[random.IntN(3)]
		q := random.Int64N(1000)
		want[m] += q
		all = append(all, recordOf(fmt.Sprintf("use-%03d", i), "org-1", fmt.Sprint("ins-", random.IntN(3)), m, begin.Add(time.Duration(random.Int64N(int64(6*time.Hour)))), q))
	}
	again := make([]api.Command, 0, 2*len(all))
	for _, c := range all {
		c.Organization, c.Project, c.ID = "org-2", "prj-org-1", c.ID+"-again"
		again = append(again, c)
		if random.IntN(2) == 0 {
			again = append(again, c)
		}
	}
	random.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	for n, cmds := range [][]api.Command{all, again[:len(again)/2], again[len(again)/2:]} {
		if _, err := t.apply(n+1, cmds...); err != nil {
			t.Fatal(err)
		}
	}
	one, two := t.used(api.UseQuery{Organization: "org-1"}), t.used(api.UseQuery{Organization: "org-2"})
	if !slices.Equal(one, two) {
		t.Errorf("use = %v, after another order of records = %v; want the same", one, two)
	}
	got := map[api.Meter]int64{}
	for _, u := range one {
		got[u.Meter] += u.Quantity
	}
	for m, q := range want {
		if got[m] != q {
			t.Errorf("use of %s = %d, want the recorded %d", m, got[m], q)
		}
	}
}

// testUseMark deletes and changes an organization with marks of its use, which are
// compared when the batch is applied.
func testUseMark(t *tester) {
	hour := time.Date(2028, 2, 29, 23, 0, 0, 0, time.UTC)
	t.must(1, thing(api.KindOrganization, "org-1", api.OrganizationSpec{}))
	t.must(2, recordOf("use-1", "org-1", "ins-1", api.MeterVCPU, hour.Add(-time.Minute), 100)) // in the hour before
	t.must(3, recordOf("use-2", "org-1", "ins-1", api.MeterVCPU, hour.Add(time.Minute), 7))
	t.must(4, recordOf("use-3", "org-1", "ins-2", api.MeterGPU, hour.Add(time.Hour), 3))
	t.must(5, recordOf("use-4", "org-2", "ins-3", api.MeterGPU, hour.Add(time.Hour), 9))
	apply := func(c api.Command, quantity uint64) error {
		c.Used = &api.UseMark{From: hour, Quantity: quantity}
		_, err := t.s.Apply(t.ctx, api.Batch{At: at(6), Commands: []api.Command{c}})
		return err
	}
	put, del := thing(api.KindOrganization, "org-1", api.OrganizationSpec{Parent: "org-9"}), removing(api.KindOrganization, "org-1")
	before := t.s.Revision()
	for _, quantity := range []uint64{0, 7, 9, 11, 19, 110} {
		t.wantCode(api.CodeConflict, apply(put, quantity))
		t.wantCode(api.CodeConflict, apply(del, quantity))
	}
	other := removing(api.KindFlavor, "flv-1")
	t.wantCode(api.CodeInvalid, apply(other, 0))
	if now := t.s.Revision(); now != before {
		t.Errorf("revision after refused batches = %d, want %d", now, before)
	}
	if err := apply(put, 10); err != nil {
		t.Error(err)
	}
	t.must(7, recordOf("use-5", "org-1", "ins-1", api.MeterVCPU, hour.Add(3*time.Hour), 1))
	t.wantCode(api.CodeConflict, apply(del, 10))
	if err := apply(del, 11); err != nil {
		t.Error(err)
	}
}

// attributedUse checks that use with different attributes is kept apart, in order,
// across pages, and that records contain the attributes.
func (t *tester) attributedUse(hour time.Time) {
	of := []api.PriceSelector{{}, {Model: "NVIDIA H100"}, {Model: "NVIDIA L4", Pool: "a"}, {Model: "NVIDIA L4", Pool: "b", Tier: "basic"}, {Flavor: "m"}}
	for i, a := range append(of, of...) {
		c := recordOf(fmt.Sprint("use-attr-", i), "org-9", "ins-1", api.MeterGPU, hour.Add(time.Duration(1+i)*time.Minute), 7)
		r, err := api.RecordOf(c, hour)
		if err != nil {
			t.Fatal(err)
		}
		r.Spec.SetAttributes(a)
		c.Data = api.Encode(r.Spec)
		if _, err := t.s.Apply(t.ctx, api.Batch{Commands: []api.Command{c}}); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(of, api.PriceSelector.Compare)
	for _, limit := range []int{1, 2, 100} {
		var got []api.PriceSelector
		for _, u := range t.used(api.UseQuery{Organization: "org-9", Limit: limit}) {
			if got = append(got, u.Attributes); u.Quantity != 14 {
				t.Errorf("use of %s = %d, want 14 from both records", u.Attributes, u.Quantity)
			}
		}
		if !slices.Equal(got, of) {
			t.Errorf("attributes of use with limit %d = %v, want %v", limit, got, of)
		}
	}
	page, err := t.s.Records(t.ctx, api.RecordQuery{Organization: "org-9", Limit: 1, ID: "use-attr-3"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Spec.Attributes() != (api.PriceSelector{Model: "NVIDIA L4", Pool: "b", Tier: "basic"}) {
		t.Errorf("record = %+v, error %v; want its attributes", page.Items, err)
	}
}
