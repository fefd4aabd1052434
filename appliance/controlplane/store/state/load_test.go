package state

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// load loads the items that each passes to place into new tables.
func load(tb *tables, format int, revision int64, each func(place func(Section, []byte) error) error) error {
	l := NewLoader(format, revision)
	return tb.db.Update(func(tx *bbolt.Tx) error {
		l.Begin(tx)
		if err := each(func(s Section, raw []byte) error { return l.Place(s, bytes.Clone(raw)) }); err != nil {
			return err
		}
		return l.Finish(1, revision, time.Time{})
	})
}

// Inconsistent usage is refused.
func TestBadUsageIsNotLoaded(t *testing.T) {
	tb := bare(t)
	for n := range 10 {
		b := statetest.Use(n)
		b.At = statetest.Began.AddDate(1, 0, 0)
		mustApply(t, tb, logEntry(t, uint64(n)+1, b))
	}
	mustApply(t, tb, logEntry(t, 11, api.Batch{At: statetest.Began.AddDate(1, 0, 0), Commands: []api.Command{
		api.ExpireRecords("org-0", statetest.Began.Add(time.Hour)), api.ExpireRecords("org-1", statetest.Began.Add(time.Hour))}}))
	type entry struct {
		Section
		row
	}
	var good []entry
	if err := tb.read(func(v View) error {
		for s, bucket := range map[Section][]byte{SectionRecords: bucketRecords, SectionUse: bucketUse} {
			if err := v.tx.Bucket(bucket).ForEach(func(k, raw []byte) error {
				good = append(good, entry{s, row{bytes.Clone(k), bytes.Clone(raw)}})
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(good, func(a, b entry) int { return int(b.Section) - int(a.Section) }) // records first
	firstSum := slices.IndexFunc(good, func(e entry) bool { return e.Section == SectionUse })
	last := len(good) - 1
	for name, c := range map[string]struct {
		corrupt func([]entry) []entry
		ok      bool
	}{
		"whole":           {func(all []entry) []entry { return all }, true},
		"without a sum":   {func(all []entry) []entry { return all[:last] }, false},
		"without any sum": {func(all []entry) []entry { return all[:firstSum] }, false},
		"a smaller sum": {func(all []entry) []entry {
			all[last].value = bytes.Clone(all[last].value)
			copy(all[last].value, be64(1))
			return all
		}, false},
		"sums in disorder":    {func(all []entry) []entry { all[last], all[last-1] = all[last-1], all[last]; return all }, false},
		"records in disorder": {func(all []entry) []entry { all[0], all[1] = all[1], all[0]; return all }, false},
		"a record twice":      {func(all []entry) []entry { return slices.Insert(all, 1, all[0]) }, false},
		"a record after sums": {func(all []entry) []entry { return append(all[1:], all[0]) }, false},
		"a record cut off": {func(all []entry) []entry {
			all[0].value = all[0].value[:len(all[0].value)-1]
			return all
		}, false},
		"a sum cut off":   {func(all []entry) []entry { all[last].value = all[last].value[:15]; return all }, false},
		"a sum's key":     {func(all []entry) []entry { all[last].key = append(bytes.Clone(all[last].key), 0); return all }, false},
		"nobody's sum":    {func(all []entry) []entry { all[last].key = []byte("zzz"); return all }, false},
		"a row of nobody": {func(all []entry) []entry { all[firstSum-1].key = []byte("zzz"); return all }, false},
	} {
		for _, format := range []int{lastWithObjects, Level} {
			all := c.corrupt(slices.Clone(good))
			err := load(bare(t), format, 1, func(place func(Section, []byte) error) error {
				for _, e := range all {
					if err := place(e.Section, append(append([]byte{byte(len(e.key))}, e.key...), e.value...)); err != nil {
						return err
					}
				}
				return nil
			})
			var bad *DumpError
			if want := c.ok && format == Level; want != (err == nil) || err != nil && !errors.As(err, &bad) {
				t.Errorf("load %q of format %d: %v, want success %v, and only DumpError errors", name, format, err, want)
			}
		}
	}
}

// A dump of an older format has records as objects, and no sums.
func TestLoadsRecordsAsObjects(t *testing.T) {
	history := oldHistory()
	old, tb := oldTables(t, lastWithObjects, history...), bare(t)
	if err := old.read(func(v View) error {
		return load(tb, lastWithObjects, v.Revision(), func(place func(Section, []byte) error) error {
			return v.dumpValues(bucketObjects, SectionObjects, place) // older programs dumped nothing else
		})
	}); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "loaded", contents(t, tb, "meta", "changes"), contents(t, reopened(t, old), "meta", "changes"))
}

// A dump contains the histories; rows without an instance, or too many, are refused.
func TestHistoryInDumps(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, historyEntries(t)...)
	into := func(to *tables) (err error) {
		readErr := tb.read(func(v View) error {
			err = load(to, Level, v.Revision(), v.Dump)
			return nil
		})
		return errors.Join(readErr, err)
	}
	again := bare(t)
	if err := into(again); err != nil {
		t.Fatal(err)
	}
	if got, want := rowsOf(t, again), rowsOf(t, tb); got != want || want == "" {
		t.Errorf("history after loading:\n%s\nwant:\n%s", got, want)
	}
	row, err := EncodeJSON(api.InstanceEvent{Revision: 1, State: "Running"})
	if err != nil {
		t.Fatal(err)
	}
	for what, k := range map[string][]byte{"of nobody": historyKey("ins-9", 1), "too many": historyKey("ins-1", 1), "elsewhere": historyKey("ins-1", 2), "no key": []byte("ins-1")} {
		if err := tb.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketHistory).Put(k, row) }); err != nil {
			t.Fatal(err)
		}
		var bad *DumpError
		if err := into(bare(t)); !errors.As(err, &bad) {
			t.Errorf("load a dump with a history row %q: %v, want DumpError", what, err)
		}
		if err := tb.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketHistory).Delete(k) }); err != nil {
			t.Fatal(err)
		}
	}
}

// A dump in which two objects claim a name is refused.
func TestClaimsAreLoadedOnce(t *testing.T) {
	var objects [][]byte
	for i := range 2 {
		raw, err := EncodeJSON(api.Object{Kind: api.KindFlavor, Meta: api.Meta{ID: fmt.Sprint("flv-", i), Revision: 1}, Claims: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, raw)
	}
	for n, want := range map[int]string{1: "", 2: "claimed by both flv-0 and flv-1"} {
		err := load(bare(t), Level, 1, func(place func(Section, []byte) error) error {
			for _, raw := range objects[:n] {
				if err := place(SectionObjects, raw); err != nil {
					return err
				}
			}
			return nil
		})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("load %d objects with the same claim: %v, want %q", n, err, want)
		}
	}
}
