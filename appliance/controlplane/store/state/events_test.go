package state

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// Events are bounded by age; removed events leave nothing in the index, and the stored
// count is the number of events.
func TestEventsAreBounded(t *testing.T) {
	tb := bare(t)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	index := uint64(0)
	event := func(at time.Time) {
		index++
		mustApply(t, tb, logEntry(t, index, api.Batch{At: at, Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision,
			Data: json.RawMessage(fmt.Sprint(index)), Event: &api.CommandEvent{Type: "a.b", Organization: fmt.Sprint("org-", index%2)}}}}))
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
	check(41 - trimMost)
	event(late)
	event(late)
	check(3)
}

// An organization that floods the events loses only its own, and how many it has lost is
// counted, whether they came before level 8 or after.
func TestEventsAreSharedOut(t *testing.T) {
	const most = 2000
	tb := bare(t)
	tb.program.Events = most
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	index, n := uint64(0), 0
	apply := func(data []byte) {
		index++
		mustApply(t, tb, Entry{index, data})
	}
	raise := func(organization string, count int) {
		for count > 0 {
			b := api.Batch{At: at}
			for range min(count, MaxCommands) {
				n, count = n+1, count-1
				b.Commands = append(b.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision,
					Data: json.RawMessage(fmt.Sprint(n)), Event: &api.CommandEvent{Type: "a.b", Organization: organization}})
			}
			raw, err := EncodeBatch(b)
			if err != nil {
				t.Fatal(err)
			}
			apply(raw)
		}
	}
	has := func(organization string, want, dropped int) {
		t.Helper()
		if err := tb.read(func(v View) error {
			got := 0
			q := api.EventQuery{Organization: organization, Limit: 1000}
			for {
				page, err := v.Events(q)
				if err != nil {
					return err
				}
				got += len(page.Items)
				if !page.More {
					if got != want || page.Dropped != int64(dropped) {
						t.Errorf("events of %q = %d, dropped %d; want %d and %d", organization, got, page.Dropped, want, dropped)
					}
					return nil
				}
				q.After = page.Items[len(page.Items)-1].Seq
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	raise("org-quiet", 70)
	raise("org-loud", 100)
	level8, err := EncodeSettlement(Settlement{Level: sharesLevel, ID: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	apply(level8)
	raise("org-loud", most)
	raise("org-quiet", 30)
	raise("org-other", 50)
	has("org-quiet", 100, 0)
	has("org-other", 50, 0)
	has("org-loud", most-150, 250)
	has("", most, 250)
	raise("org-other", most) // two that flood share the rest
	has("org-quiet", 100, 0)
	has("org-loud", (most-100)/2, 100+most-(most-100)/2)
}
