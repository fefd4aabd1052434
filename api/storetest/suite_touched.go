package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func testTouched(t *tester) {
	kinds := []api.Kind{api.KindOrganization, api.KindFlavor, api.KindUsageRecord}
	mark := int64(0)
	look := func(all bool, want ...string) {
		t.Helper()
		got, err := t.s.Touched(t.ctx, mark, kinds...)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, id := range slices.Sorted(maps.Keys(got.Organizations)) {
			touch := got.Organizations[id]
			slices.Sort(touch.Kinds)
			words := fmt.Sprint(id, " ", touch.Kinds)
			if touch.Has(api.KindUsageRecord) {
				words += touch.Hour.Format(" 15h")
			}
			said = append(said, words)
		}
		if got.All != all || !slices.Equal(said, want) {
			t.Errorf("touched: all %v, %q; want %v, %q", got.All, said, all, want)
		}
		mark = got.Mark
	}
	look(true)
	look(false)
	t.must(1, flavor("flv-1", "small", 1, 0)) // belongs to no organization
	t.must(2, api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "a", Data: []byte(`{}`)})
	t.must(3, api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "a", Organization: "org-2", Data: []byte(`{}`)}) // not asked for
	look(false, " [Flavor]", "org-1 [Organization]")
	look(false)
	hour := time.Date(2028, 3, 1, 10, 0, 0, 0, time.UTC)
	record := func(n int, org string, h int) {
		t.must(10+n, recordOf(fmt.Sprint("use-", n), org, "ins-1", api.MeterVCPU, hour.Add(time.Duration(h)*time.Hour+time.Minute), 1))
	}
	record(1, "org-1", 3)
	record(2, "org-1", 2) // arrives late
	record(3, "org-2", 3)
	look(false, "org-1 [UsageRecord] 12h", "org-2 [UsageRecord] 13h")
	record(4, "org-1", 4)
	look(false, "org-1 [UsageRecord] 14h")
	record(5, "org-1", 6)
	record(6, "org-1", 5)
	look(false, "org-1 [UsageRecord] 15h")
	at := mark
	for n := range 8 { // more hours than are stored individually: an earlier one may be returned
		record(20+n, "org-1", 7+n)
	}
	got, err := t.s.Touched(t.ctx, mark, kinds...)
	if err != nil || got.Organizations["org-1"].Hour.After(hour.Add(7*time.Hour)) {
		t.Errorf("touched after many hours = %+v, error %v; want no later hour than %s", got, err, hour.Add(7*time.Hour))
	}
	mark = got.Mark
	record(40, "org-1", 0)
	look(false, "org-1 [UsageRecord] 10h")
	if mark < at {
		t.Errorf("mark = %d, want at least %d", mark, at)
	}
	t.fails(api.CodeExists, flavor("flv-1", "small", 2, 0)) // refused
	t.must(50, api.Command{Op: api.OpDelete, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision})
	look(false, " [Flavor]")
	mark += 1000 // from another process
	look(true)
	if all, err := t.s.Touched(t.ctx, 0, kinds...); err != nil || !all.All || strings.Join(slices.Sorted(maps.Keys(all.Organizations)), "") != "" {
		t.Errorf("touched from the beginning = %+v, error %v; want all", all, err)
	}
}
