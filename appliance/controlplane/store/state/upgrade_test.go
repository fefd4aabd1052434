package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// oldTables returns tables as programs before format 5 built them from batches of usage
// records: objects with four indexes and an entry in the change log, and sums from
// format 3 on.
func oldTables(t *testing.T, format uint64, batches ...api.Batch) *tables {
	t.Helper()
	tb := bare(t)
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		v := View{tx: tx}
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
				raw, err := EncodeJSON(o)
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

// oldEntry returns a log entry as programs before format 5 wrote it: all JSON.
func oldEntry(t *testing.T, index uint64, b api.Batch) Entry {
	t.Helper()
	raw, err := EncodeJSON(b)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{index, append([]byte{batchVersion}, raw...)}
}

// oldHistory returns batches with records, some repeated, and one that is not valid
// use, which older programs kept.
func oldHistory() (all []api.Batch) {
	for n := range 10 {
		b := statetest.Use(n)
		b.At = statetest.Began.Add(time.Duration(n) * time.Minute)
		all = append(all, b, b)
	}
	bad := statetest.Use(11)
	bad.Commands = bad.Commands[:1]
	bad.Commands[0].Data = json.RawMessage(`{"quantity":-1}`)
	return append(all, bad)
}

// Tables of each older format are upgraded to those of a node that has applied the same
// old log with this program.
func TestTablesWithRecordsAsObjects(t *testing.T) {
	history := oldHistory()
	fresh := bare(t)
	for i, b := range history {
		mustApply(t, fresh, oldEntry(t, uint64(i+1), b))
	}
	want := contents(t, fresh)
	use := useOf(t, fresh, "org-0")
	if len(use.Items) != 6 || use.Items[0].Quantity != 600 || use.Items[0].ResourceName != "name-3" || use.More {
		t.Fatalf("use of org-0 = %+v, want 6 items, the first 600 of name-3, and no more pages", use)
	}
	if all := recordsOf(t, fresh, api.RecordQuery{Limit: 1000}); len(all) != 30 {
		t.Fatalf("stored records = %d, want 30", len(all))
	}
	for format := uint64(2); format <= lastWithObjects; format++ {
		old := oldTables(t, format, history...)
		opened := reopened(t, old)
		name := fmt.Sprintf("format %d", format)
		sameContents(t, name, contents(t, opened), want)
		mustApply(t, opened, logEntry(t, 100, statetest.Use(3)), logEntry(t, 101, statetest.Use(10)))
		if got := useOf(t, opened, "org-0"); len(got.Items) != 6 || got.Items[5].Quantity != 800+900+1000+6 {
			t.Errorf("%s: use of org-0 after new records = %+v, want 6 items, the last of %d", name, got, 800+900+1000+6)
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

// An interrupted upgrade continues where it stopped.
func TestUpgradeGoesOn(t *testing.T) {
	var history []api.Batch
	for n := 0; n < 2*upgradeBatch+500; n += 500 {
		b := api.Batch{At: statetest.Began}
		for i := n; i < n+500; i++ {
			c := statetest.Record(i%3, i+1)
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
		more, err := View{tx: tx}.recordsToRows()
		if !more {
			t.Error("recordsToRows converted all records in one transaction, want some left")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	sameContents(t, "gone on", contents(t, reopened(t, half)), want)
	if n := len(recordsOf(t, whole, api.RecordQuery{Limit: 1000, Organization: "org-1"})); n == 0 {
		t.Error("upgraded tables have no records of org-1, want some")
	}
}

func recordsOf(t *testing.T, tb *tables, q api.RecordQuery) (all []api.UsageRecord) {
	t.Helper()
	for {
		var page api.RecordPage
		if err := tb.read(func(v View) (err error) { page, err = v.Records(q); return err }); err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if q.After = page.Next; !page.More {
			return all
		}
	}
}

// Of old and new entries with the same records in one group, each record counts once.
func TestOldAndNewEntriesInGroup(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, logEntry(t, 1, statetest.Use(1)), oldEntry(t, 2, statetest.Use(1)), oldEntry(t, 3, statetest.Use(2)), logEntry(t, 4, statetest.Use(2)), oldEntry(t, 5, statetest.Use(2)))
	if all := recordsOf(t, tb, api.RecordQuery{Limit: 1000}); len(all) != 6 {
		t.Errorf("stored records = %d, want 6", len(all))
	}
	if got := useOf(t, tb, "org-0"); len(got.Items) != 2 || got.Items[0].Quantity != 300 {
		t.Errorf("use of org-0 = %+v, want 2 items, the first of 300", got.Items)
	}
	if err := tb.read(func(v View) error {
		if v.Revision() != 3 { // one for each of the three records that an old entry was the first to contain
			t.Errorf("revision = %d, want 3", v.Revision())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
