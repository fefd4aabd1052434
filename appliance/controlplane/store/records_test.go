package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// A record that was acknowledged is read on every node, although it moves no
// revision.
func TestRecordsOnEveryNode(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	for k := 1; k <= 20; k++ {
		ids := c.ids()
		if _, err := c.store(ids[k%3]).Apply(t.Context(), api.Batch{Commands: []api.Command{crashRecord(0, k)}}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if records, sum, err := crashUsed(c.store(id), 0); records != k || sum != int64(k)*int64(k+1)/2 || err != nil {
				t.Fatalf("%s has %d records of %d, which come to %d, %v", id, records, k, sum, err)
			}
		}
	}
	if _, err := c.store(c.follower()).Apply(t.Context(), api.Batch{Commands: []api.Command{crashRecord(0, 1), {Op: api.OpRecord, Kind: api.KindUsageRecord, ID: "use-x", Data: []byte(`{}`)}}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("through a follower: %v", err)
	}
}

// A page looks at so many records only; the next one goes on.
func TestPagesOfFewRecords(t *testing.T) {
	tb := bare(t)
	const all, each = 120_000, 1000
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRecords)
		for i := range all {
			r := api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: fmt.Sprintf("use-%06d", i), Organization: fmt.Sprintf("org-%03d", i/each), CreatedAt: useBegin},
				Spec: api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", Start: useBegin, End: useBegin.Add(time.Duration(i % each)), Quantity: 1}}
			w := rowOf(r)
			if err := b.Put(w.key, w.value); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	pages := func(q api.RecordQuery) (found, pages int) {
		for {
			var page api.RecordPage
			if err := tb.read(func(v view) (err error) { page, err = v.records(q); return err }); err != nil {
				t.Fatal(err)
			}
			found, pages = found+len(page.Items), pages+1
			if q.After = page.Next; !page.More {
				return found, pages
			}
		}
	}
	if found, n := pages(api.RecordQuery{ID: fmt.Sprintf("use-%06d", all-1), Limit: 10}); found != 1 || n != 3 {
		t.Errorf("found %d on %d pages", found, n)
	}
	if found, n := pages(api.RecordQuery{From: useBegin.Add(each - 2), Limit: 1000}); found != all/each || n != 1 {
		t.Errorf("of a short period %d on %d pages", found, n)
	}
	if found, n := pages(api.RecordQuery{To: useBegin, From: useBegin.Add(-1), Limit: 100}); found != all/each || n != 2 {
		t.Errorf("of the first moment %d on %d pages", found, n)
	}
	if found, n := pages(api.RecordQuery{From: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Limit: 1000}); found != 0 || n != 1 {
		t.Errorf("of nobody's time %d on %d pages", found, n)
	}
}

// expired is a store of which some records were let go of.
func expired(t *testing.T) (s *Store, old api.Batch) {
	s = open(t, Options{})
	for n := range 10 {
		b := useBatch(n)
		b.At = useBegin.AddDate(1, 0, 0)
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	b := api.Batch{At: useBegin.AddDate(1, 0, 0), Commands: []api.Command{api.ExpireRecords("org-0", useBegin.Add(time.Hour)), api.ExpireRecords("org-1", useBegin.Add(time.Hour))}}
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s, useBatch(0)
}

// A backup has the sums of records that are gone, and what was let go of counts
// no more in what is made of it either.
func TestExpiredRecordsInABackup(t *testing.T) {
	s, old := expired(t)
	dir := filepath.Join(t.TempDir(), "restored")
	raw := backupOf(t, s)
	info, err := RestoreInto(dir, "node-b", bytes.NewReader(raw))
	if err != nil || !info.Horizon.Equal(useBegin.Add(time.Hour)) {
		t.Fatal(info, err)
	}
	restored := open(t, Options{Dir: dir, NodeID: "node-b"})
	but := [][]byte{bucketMeta, bucketChanges}
	want := contents(t, s.tables, but...)
	records, sums := 0, 0
	for k := range want {
		if bytes.HasPrefix([]byte(k), bucketRecords) {
			records++
		}
		if bytes.HasPrefix([]byte(k), append(bytes.Clone(bucketUse), ' ')) {
			sums++
		}
	}
	if records != 30-9 || sums != 9 {
		t.Fatalf("%d records, %d sums", records, sums)
	}
	sameContents(t, "restored", contents(t, restored.tables, but...), want)
	if _, err := restored.Apply(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "told again", contents(t, restored.tables, but...), want)
	// One of before anything was let go of has no horizon.
	if raw := backupOf(t, open(t, Options{})); bytes.Contains(raw, []byte("horizon")) {
		t.Errorf("%q", raw)
	}
}

// Whole backups whose usage does not fit together are refused.
func TestBadUsageInABackup(t *testing.T) {
	s, _ := expired(t)
	type entry struct {
		kind byte
		row
	}
	var good []entry
	if err := s.tables.read(func(v view) error {
		for kind, bucket := range map[byte][]byte{recordUsage: bucketRecords, recordSum: bucketUse} {
			if err := v.tx.Bucket(bucket).ForEach(func(k, raw []byte) error {
				good = append(good, entry{kind, row{bytes.Clone(k), bytes.Clone(raw)}})
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(good, func(a, b entry) int { return int(b.kind) - int(a.kind) }) // records first
	firstSum := slices.IndexFunc(good, func(e entry) bool { return e.kind == recordSum })
	last := len(good) - 1
	for name, c := range map[string]struct {
		spoil func([]entry) []entry
		ok    bool
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
			var raw bytes.Buffer
			b := newBackupWriter(t.Context(), &raw)
			err := b.begin(BackupInfo{Format: format})
			for _, e := range c.spoil(slices.Clone(good)) {
				if err == nil {
					err = b.record(e.kind, append(append([]byte{byte(len(e.key))}, e.key...), e.value...))
				}
				if e.kind == recordSum {
					b.end.Sums++
				} else {
					b.end.Usage++
				}
			}
			if err == nil {
				err = b.finish()
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "restored")
			_, err = RestoreInto(dir, "node-b", &raw)
			if want := c.ok && format == Level; want != (err == nil) || err != nil && api.CodeOf(err) != api.CodeInvalid {
				t.Errorf("%s, format %d: %v", name, format, err)
			}
		}
	}
}

// Every kind of batch holds in a term, also those that raise events and record.
func TestEveryVersionOfATerm(t *testing.T) {
	s := open(t, Options{})
	term := s.LeadTerm()
	raising := claimBatch("flv-1")
	raising.Commands[0].Raise = &api.Raise{Type: "budget.reached", Organization: "org-1"}
	noted := claimBatch("flv-2")
	noted.Audit = &api.AuditNote{Operation: "CreateFlavor"}
	for i, b := range []api.Batch{raising, noted, claimBatch("flv-3", "a"), claimBatch("flv-4"), useBatch(0)} {
		if _, err := s.ApplyInTerm(t.Context(), term, b); err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if page, err := s.Records(t.Context(), api.RecordQuery{Limit: 10}); err != nil || len(page.Items) != 3 {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err := s.Events(t.Context(), api.EventQuery{Limit: 10}); err != nil || len(page.Items) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// FuzzRow reads rows that may be damaged: never a panic, and what is read
// would be written as it was.
func FuzzRow(f *testing.F) {
	w := rowOf(api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: "use-1", Organization: "org-1", Project: "prj-1", CreatedAt: useBegin},
		Spec: api.UsageRecordSpec{Meter: api.MeterGPU, Resource: "ins-1", ResourceName: "web", Node: "node-1", Start: useBegin.Add(-time.Minute), End: useBegin, Quantity: 7}})
	f.Add(w.key, w.value)
	f.Add(w.key, w.value[:len(w.value)-1])
	f.Add([]byte{}, []byte{})
	f.Add(append([]byte{0}, be64(1<<63)...), []byte{1})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := row{key, value}.record(interned{})
		if err != nil {
			return
		}
		if again := rowOf(r); !bytes.Equal(again.key, key) || !bytes.Equal(again.value, value) {
			t.Errorf("%q %q is read as %+v, which is %q %q", key, value, r, again.key, again.value)
		}
	})
}
