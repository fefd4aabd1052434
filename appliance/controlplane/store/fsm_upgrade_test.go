package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// oldTables are tables as programs before format 5 made them of batches of
// usage records: objects with four indexes and a place in the change log, and
// sums from format 3 on.
func oldTables(t *testing.T, format uint64, batches ...api.Batch) *tables {
	t.Helper()
	tb := bare(t)
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		v := view{tx: tx}
		if err := tx.DeleteBucket(bucketRecords); err != nil {
			return err
		}
		if format < 3 {
			if err := tx.DeleteBucket(bucketUse); err != nil {
				return err
			}
		}
		revision := int64(0)
		for _, b := range batches {
			for _, c := range b.Commands {
				if tx.Bucket(bucketObjects).Get(join(string(c.Kind), c.ID)) != nil {
					continue
				}
				revision++
				o := api.Object{Kind: c.Kind, Spec: c.Data, Meta: api.Meta{ID: c.ID, Name: c.Name, Organization: c.Organization, Project: c.Project,
					Generation: 1, CreatedAt: b.At, UpdatedAt: b.At, Revision: revision}}
				raw, err := encodeJSON(o)
				if err != nil {
					return err
				}
				for _, put := range []struct{ bucket, key, value []byte }{{bucketObjects, join(string(o.Kind), o.Meta.ID), raw},
					{bucketNames, nameKey(o), nil}, {bucketByOrg, organizationKey(o), nil}, {bucketByProj, projectKey(o), nil}} {
					if err := tx.Bucket(put.bucket).Put(put.key, put.value); err != nil {
						return err
					}
				}
				if err := v.addChange(api.Event{Type: api.EventPut, Revision: revision, Object: o}, raw); err != nil {
					return err
				}
				r, err := api.Decode[api.UsageRecord](o)
				if err != nil {
					return err
				}
				u, ok := api.UseOf(r)
				if !ok || format < 3 {
					continue
				}
				if raw := tx.Bucket(bucketUse).Get(useKey(c.Organization, u)); raw != nil {
					before, err := decodeUse(raw, interned{})
					if err != nil {
						return err
					}
					u = u.Plus(before)
				}
				if err := tx.Bucket(bucketUse).Put(useKey(c.Organization, u), encodeUse(u)); err != nil {
					return err
				}
			}
		}
		meta := tx.Bucket(bucketMeta)
		if err := meta.Put(metaRevision, be64(uint64(revision))); err != nil {
			return err
		}
		if err := meta.Put(metaApplied, be64(uint64(len(batches)))); err != nil {
			return err
		}
		return meta.Put(metaFormat, be64(format))
	}); err != nil {
		t.Fatal(err)
	}
	return tb
}

// oldEntry is a log entry as programs before format 5 wrote it: all JSON.
func oldEntry(t *testing.T, index uint64, b api.Batch) entry {
	t.Helper()
	raw, err := encodeJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	return entry{index, append([]byte{batchVersion}, raw...)}
}

// contents are all keys and values of tables, by bucket.
func contents(t *testing.T, tb *tables, but ...[]byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := tb.read(func(v view) error {
		for _, name := range buckets {
			if slices.ContainsFunc(but, func(b []byte) bool { return bytes.Equal(b, name) }) {
				continue
			}
			if err := v.tx.Bucket(name).ForEach(func(k, raw []byte) error {
				out[fmt.Sprintf("%s %q", name, k)] = string(raw)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func sameContents(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for k := range maps.Keys(want) {
		if v, ok := got[k]; !ok || v != want[k] {
			t.Errorf("%s: %s is %q, want %q", what, k, v, want[k])
		}
	}
	for k := range maps.Keys(got) {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s is there", what, k)
		}
	}
}

// oldHistory has records, some told twice, and one that could be no use, which
// older programs kept.
func oldHistory() (all []api.Batch) {
	for n := range 10 {
		b := useBatch(n)
		b.At = useBegin.Add(time.Duration(n) * time.Minute)
		all = append(all, b, b)
	}
	bad := useBatch(11)
	bad.Commands = bad.Commands[:1]
	bad.Commands[0].Data = json.RawMessage(`{"quantity":-1}`)
	return append(all, bad)
}

func snapshotOf(t *testing.T, tb *tables) *bytes.Buffer {
	t.Helper()
	v, end, err := tb.begin()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	var sent bytes.Buffer
	if err := (&snapshot{view: v}).writeTo(&sent); err != nil {
		t.Fatal(err)
	}
	return &sent
}

// Tables of each older format become the same, opened or sent as a snapshot:
// those of a node that has applied the same old log with this program.
func TestTablesWithRecordsAsObjects(t *testing.T) {
	history := oldHistory()
	fresh := bare(t)
	for i, b := range history {
		mustApply(t, fresh, oldEntry(t, uint64(i+1), b))
	}
	want := contents(t, fresh)
	use := useOf(t, fresh, "org-0")
	if len(use.Items) != 6 || use.Items[0].Quantity != 600 || use.Items[0].ResourceName != "name-3" || use.More {
		t.Fatalf("%+v", use)
	}
	if all := recordsOf(t, fresh, api.RecordQuery{Limit: 1000}); len(all) != 30 {
		t.Fatalf("%d records", len(all))
	}
	for format := uint64(2); format <= lastWithObjects; format++ {
		old := oldTables(t, format, history...)
		restored := bare(t)
		if err := restore(restored, snapshotOf(t, old)); err != nil {
			t.Fatal(err)
		}
		opened := reopened(t, old)
		for name, tb := range map[string]*tables{"opened": opened, "restored": restored} {
			name = fmt.Sprintf("format %d, %s", format, name)
			sameContents(t, name, contents(t, tb), want)
			mustApply(t, tb, logEntry(t, 100, useBatch(3)), logEntry(t, 101, useBatch(10)))
			if got := useOf(t, tb, "org-0"); len(got.Items) != 6 || got.Items[5].Quantity != 800+900+1000+6 {
				t.Errorf("%s, afterwards: %+v", name, got)
			}
		}
	}
}

func reopened(t *testing.T, tb *tables) *tables {
	t.Helper()
	if err := tb.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openTables(tb.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.close() })
	return again
}

// Killed among the steps, the upgrade goes on where it was.
func TestUpgradeGoesOn(t *testing.T) {
	var history []api.Batch
	for n := 0; n < 2*upgradeBatch+500; n += 500 {
		b := api.Batch{At: useBegin}
		for i := n; i < n+500; i++ {
			c := crashRecord(i%3, i+1)
			b.Commands = append(b.Commands, c)
		}
		history = append(history, b)
	}
	whole := reopened(t, oldTables(t, lastWithObjects, history...))
	want := contents(t, whole)
	half := oldTables(t, lastWithObjects, history...)
	if err := half.db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket(bucketRecords); err != nil {
			return err
		}
		more, err := view{tx: tx}.recordsToRows()
		if !more {
			t.Error("nothing is left")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "gone on", contents(t, reopened(t, half)), want)
	if n := len(recordsOf(t, whole, api.RecordQuery{Limit: 1000, Organization: "org-1"})); n == 0 {
		t.Error("no records")
	}
}

func recordsOf(t *testing.T, tb *tables, q api.RecordQuery) (all []api.UsageRecord) {
	t.Helper()
	for {
		var page api.RecordPage
		if err := tb.read(func(v view) (err error) { page, err = v.records(q); return err }); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if q.After = page.Next; !page.More {
			return all
		}
	}
}

// Old entries and new ones in one group: each record once.
func TestOldAndNewEntriesInAGroup(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, logEntry(t, 1, useBatch(1)), oldEntry(t, 2, useBatch(1)), oldEntry(t, 3, useBatch(2)), logEntry(t, 4, useBatch(2)), oldEntry(t, 5, useBatch(2)))
	if all := recordsOf(t, tb, api.RecordQuery{Limit: 1000}); len(all) != 6 {
		t.Errorf("%d records", len(all))
	}
	if got := useOf(t, tb, "org-0"); len(got.Items) != 2 || got.Items[0].Quantity != 300 {
		t.Errorf("%+v", got.Items)
	}
	if err := tb.read(func(v view) error {
		if v.revision() != 3 { // of the three that an old entry was the first to have
			t.Errorf("revision %d", v.revision())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A backup of before has records as objects, and no sums.
func TestBackupWithRecordsAsObjects(t *testing.T) {
	history := oldHistory()
	old := oldTables(t, lastWithObjects, history...)
	var raw bytes.Buffer
	v, end, err := old.begin()
	if err != nil {
		t.Fatal(err)
	}
	b := newBackupWriter(t.Context(), &raw)
	// Without the buckets that an older program did not write.
	err = b.begin(BackupInfo{Format: lastWithObjects, Revision: v.revision()})
	if err == nil {
		err = b.objects(v)
	}
	if err == nil {
		err = b.finish()
	}
	end()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-b", &raw); err != nil {
		t.Fatal(err)
	}
	tb, err := openTables(filepath.Join(dir, "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer tb.close()
	sameContents(t, "restored", contents(t, tb, bucketMeta, bucketChanges), contents(t, reopened(t, old), bucketMeta, bucketChanges))
}
