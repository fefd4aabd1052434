package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Events are bounded by age; those that go leave nothing in the index, and what
// is counted is what there is.
func TestEventsAreBounded(t *testing.T) {
	tb := bare(t)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	index := uint64(0)
	event := func(at time.Time) {
		index++
		mustApply(t, tb, logEntry(t, index, api.Batch{At: at, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision,
			Data: json.RawMessage(fmt.Sprint(index)), Raise: &api.Raise{Type: "a.b", Organization: fmt.Sprint("org-", index%2)}}}}))
	}
	check := func(want int) {
		t.Helper()
		if err := tb.db.View(func(tx *bbolt.Tx) error {
			b, o := tx.Bucket(bucketEvents), tx.Bucket(bucketEventOrg)
			if n := b.Stats().KeyN; n != want || int(b.Sequence()) != n || o.Stats().KeyN != n {
				t.Errorf("%d events, %d counted, %d in the index; want %d", n, b.Sequence(), o.Stats().KeyN, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		event(at.Add(time.Duration(i) * time.Minute))
	}
	check(40)
	late := at.Add(api.WebhookEventAge + time.Hour)
	event(late)
	check(41 - untellMost)
	event(late)
	event(late)
	check(3)
}

// What a restored cluster's events are called, no event of the old one was.
func TestEventsAfterRestore(t *testing.T) {
	before := api.EventsOf(nil, api.Event{Revision: 41, Object: api.Object{Kind: api.KindVolume}}, &api.Raise{Type: "a.b"}, time.Time{})
	after := api.EventsOf(nil, api.Event{Revision: 41 + revisionGap, Object: api.Object{Kind: api.KindVolume}}, &api.Raise{Type: "a.b"}, time.Time{})
	if len(before) != 2 || len(after) != 2 || after[0].Seq <= before[1].Seq || before[0].ID == before[1].ID {
		t.Errorf("%+v %+v", before, after)
	}
}
