package state

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A page examines a limited number of records; the next one continues.
func TestPagesOfFewRecords(t *testing.T) {
	tb := bare(t)
	const all, each = 120_000, 1000
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRecords)
		for i := range all {
			r := api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: fmt.Sprintf("use-%06d", i), Organization: fmt.Sprintf("org-%03d", i/each), CreatedAt: statetest.Began},
				Spec: api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", Start: statetest.Began, End: statetest.Began.Add(time.Duration(i % each)), Quantity: 1}}
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
			if err := tb.read(func(v View) (err error) { page, err = v.Records(q); return err }); err != nil {
				t.Fatal(err)
			}
			found, pages = found+len(page.Items), pages+1
			if q.After = page.Next; !page.More {
				return found, pages
			}
		}
	}
	if found, n := pages(api.RecordQuery{ID: fmt.Sprintf("use-%06d", all-1), Limit: 10}); found != 1 || n != 3 {
		t.Errorf("last record: found %d on %d pages, want 1 on 3", found, n)
	}
	if found, n := pages(api.RecordQuery{From: statetest.Began.Add(each - 2), Limit: 1000}); found != all/each || n != 1 {
		t.Errorf("end of the period: found %d on %d pages, want %d on 1", found, n, all/each)
	}
	if found, n := pages(api.RecordQuery{To: statetest.Began, From: statetest.Began.Add(-1), Limit: 100}); found != all/each || n != 2 {
		t.Errorf("first moment: found %d on %d pages, want %d on 2", found, n, all/each)
	}
	if found, n := pages(api.RecordQuery{From: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Limit: 1000}); found != 0 || n != 1 {
		t.Errorf("period without records: found %d on %d pages, want 0 on 1", found, n)
	}
}

// FuzzRow decodes rows that may be damaged: it must not panic, and an accepted row
// encodes to the same bytes again.
func FuzzRow(f *testing.F) {
	w := rowOf(api.UsageRecord{Kind: api.KindUsageRecord, Meta: api.Meta{ID: "use-1", Organization: "org-1", Project: "prj-1", CreatedAt: statetest.Began},
		Spec: api.UsageRecordSpec{Meter: api.MeterGPU, Resource: "ins-1", ResourceName: "web", Node: "node-1", Start: statetest.Began.Add(-time.Minute), End: statetest.Began, Quantity: 7}})
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
			t.Errorf("row %q %q decodes to %+v, which encodes to %q %q", key, value, r, again.key, again.value)
		}
	})
}
