package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
)

// rowsOf returns all rows of the histories, as they are stored.
func rowsOf(t *testing.T, tb *tables) string {
	t.Helper()
	var out bytes.Buffer
	if err := tb.read(func(v View) error {
		return v.tx.Bucket(bucketHistory).ForEach(func(k, raw []byte) error {
			_, err := fmt.Fprintf(&out, "%x %s\n", k, raw)
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// historyEntries returns entries that create, change and delete instances.
func historyEntries(t *testing.T) (all []Entry) {
	t.Helper()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 * api.MaxHistory {
		id := fmt.Sprint("ins-", i%3)
		b := api.Batch{At: start.Add(time.Duration(i) * time.Second), Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Expect: api.AnyRevision, Data: json.RawMessage(fmt.Sprintf(`{"restarts":%d}`, i))},
			{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: json.RawMessage(fmt.Sprintf(`{"phase":"Failed","lastError":"%d"}`, i))}}}
		if i%5 == 0 {
			b.Audit = &api.AuditNote{Actor: "key-1", Operation: "RestartInstance"}
		}
		all = append(all, logEntry(t, uint64(i+1), b))
	}
	return append(all, logEntry(t, uint64(len(all)+1), api.Batch{At: start.Add(time.Hour), Commands: []api.Command{
		{Op: api.OpDelete, Kind: api.KindInstance, ID: "ins-2", Expect: api.AnyRevision}}}))
}

// A replay has the same result however the log is split into transactions, also when
// applied entries are repeated.
func TestHistoryReplays(t *testing.T) {
	all := historyEntries(t)
	at := func(pieces ...int) string {
		tb := bare(t)
		from := 0
		for _, to := range append(pieces, len(all)) {
			if _, err := tb.apply(all[max(0, from-2):to]); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		return rowsOf(t, tb)
	}
	want := at()
	if n := bytes.Count([]byte(want), []byte("\n")); n != 2*api.MaxHistory {
		t.Errorf("rows of the histories of two instances = %d, want %d", n, 2*api.MaxHistory)
	}
	for _, pieces := range [][]int{{1}, {7, 50, 51}, {100}} {
		if got := at(pieces...); got != want {
			t.Errorf("history applied in pieces %v differs from that applied at once:\n%s\nwant:\n%s", pieces, got, want)
		}
	}
}

// Tables from before there were histories can be opened, and have histories from then on.
func TestTablesWithoutHistories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tables.db")
	tb, err := openTables(path)
	if err != nil {
		t.Fatal(err)
	}
	all := historyEntries(t)
	if _, err := tb.apply(all[:3]); err != nil {
		t.Fatal(err)
	}
	if err := tb.db.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket(bucketMeta).Put(metaFormat, be64(5)); err != nil {
			return err
		}
		return tx.DeleteBucket(bucketHistory)
	}); err != nil {
		t.Fatal(err)
	}
	if err := tb.close(); err != nil {
		t.Fatal(err)
	}
	if tb, err = openTables(path); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tb.close() }()
	if got := rowsOf(t, tb); got != "" {
		t.Errorf("history of upgraded tables = %s, want none", got)
	}
	if _, err := tb.apply(all[3:5]); err != nil {
		t.Fatal(err)
	}
	if rowsOf(t, tb) == "" {
		t.Error("history after entries on upgraded tables is empty, want rows")
	}
}
