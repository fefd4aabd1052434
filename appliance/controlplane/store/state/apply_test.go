package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A refused batch among many entries of one transaction leaves no trace.
func TestGroupWithRefusedBatch(t *testing.T) {
	bad := statetest.Batch(1, 1)
	bad.Commands = append(bad.Commands, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-none", Data: []byte(`{}`)})
	tb := bare(t)
	answers, revision := mustApply(t, tb, logEntry(t, 1, statetest.Batch(0, 1)), logEntry(t, 2, bad), logEntry(t, 3, statetest.Batch(2, 1)))
	if revision != 4 || answers[0].Refused != nil || answers[1].Refused == nil || answers[2].Refused != nil {
		t.Errorf("revision = %d, want 4; answers = %+v, want only the second refused", revision, answers)
	}
	err := tb.read(func(v View) error {
		if o, err := v.object(key{api.KindFlavor, "flv-a1"}); o != nil || err != nil {
			t.Errorf("object flv-a1 of the refused batch = %v, %v; want none", o, err)
		}
		if n := v.Applied(); n != 3 {
			t.Errorf("applied index = %d, want 3", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBatchMemoryIsBounded(t *testing.T) {
	tb := bare(t)
	put := func(k int) api.Batch {
		return api.Batch{ID: fmt.Sprint(k), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1",
			Expect: api.AnyRevision, Data: fmt.Appendf(nil, `{"n":%d}`, k)}}}
	}
	var entries []Entry
	const n = rememberBatches + 100
	for k := 1; k <= n; k++ {
		entries = append(entries, logEntry(t, uint64(k), put(k)))
	}
	mustApply(t, tb, entries...)
	kept, changes := 0, 0
	err := tb.read(func(v View) error {
		kept, changes = v.tx.Bucket(bucketBatches).Stats().KeyN, v.tx.Bucket(bucketChanges).Stats().KeyN
		return nil
	})
	if err != nil || kept != rememberBatches || changes != KeepChanges {
		t.Errorf("kept %d batches and %d changes, error %v; want %d and %d", kept, changes, err, rememberBatches, KeepChanges)
	}
	if _, r := mustApply(t, tb, logEntry(t, n+1, put(n-rememberBatches+1))); r != n {
		t.Errorf("revision after repeating the oldest remembered batch = %d, want %d: it was applied again", r, n)
	}
	if _, r := mustApply(t, tb, logEntry(t, n+2, put(n-rememberBatches))); r != n+1 {
		t.Errorf("revision after repeating a forgotten batch = %d, want %d: it was not applied", r, n+1)
	}
}

func TestBatchMemoryIsBoundedInBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("writes more than the 64 MiB that are remembered")
	}
	tb := bare(t)
	var index uint64
	for k := range 40 {
		index++
		data := `{"pad":"` + strings.Repeat("x", 2<<20) + fmt.Sprint(k) + `"}`
		mustApply(t, tb, logEntry(t, index, api.Batch{ID: fmt.Sprint(k), Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: []byte(data)}}}))
	}
	err := tb.read(func(v View) error {
		kept, counted := uint64(0), v.tx.Bucket(bucketBatchSeq).Sequence()
		return v.tx.Bucket(bucketBatches).ForEach(func(_, raw []byte) error {
			if kept += uint64(len(raw) - 8); kept > rememberBytes || kept > counted {
				t.Fatalf("kept %d bytes of answers, counted %d; want at most %d, and no more than counted", kept, counted, rememberBytes)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// A log entry of another version is not skipped.
func TestUnknownEntry(t *testing.T) {
	_, err := bare(t).apply([]Entry{{1, []byte{99, '{', '}'}}})
	var old *TooOld
	if !errors.As(err, &old) || !strings.Contains(err.Error(), "install the cluster's release on this node") {
		t.Errorf("apply an entry of unknown version: %v, want a TooOld error", err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for _, b := range []api.Batch{{}, statetest.Batch(0, 1), statetest.Claims("flv-1", "a"), statetest.Claims("flv-1"), statetest.Use(1)} {
		raw, err := EncodeBatch(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte{1, '{', '"', 'c', 'o', 'm', 'm', 'a', 'n', 'd', 's', '"', ':', '[', '{', '}', ']', '}'})
	f.Add([]byte{})
	f.Add([]byte{2})
	dir := f.TempDir()
	tb, err := openTables(filepath.Join(dir, "tables.db"))
	if err != nil {
		f.Fatal(err)
	}
	tb.db.NoSync = true
	var index uint64
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := decodeBatch(raw, interned{})
		if err != nil {
			return
		}
		batch := proposed(t, b)
		if CheckBatch(batch) != nil {
			return
		}
		again, err := EncodeBatch(batch)
		if err != nil {
			return // a time outside of years 0 to 9999
		}
		b2, err := decodeBatch(again, interned{})
		if err != nil {
			t.Fatal(err)
		}
		if other := proposed(t, b2); !cmp.Equal(batch.Commands, other.Commands, sameJSON) || len(b2.records) < len(b.records) {
			t.Fatalf("batch after encoding and decoding (-want +got):\n%s", cmp.Diff(batch.Commands, other.Commands, sameJSON))
		}
		index++
		for _, raw := range [][]byte{raw, again} {
			if _, err := tb.apply([]Entry{{index, raw}}); err != nil {
				t.Fatal(err)
			}
			index++
		}
	})
}

// proposed returns the batch that an entry was encoded from.
func proposed(t *testing.T, b logged) api.Batch {
	t.Helper()
	out := b.Batch
	if len(b.records) == 0 {
		return out
	}
	out.Commands = nil
	others := b.Commands
	for i, at := range b.at {
		n := at - len(out.Commands)
		out.Commands, others = append(out.Commands, others[:n]...), others[n:]
		r, err := b.records[i].record(interned{})
		if err != nil {
			t.Fatal(err)
		}
		out.Commands = append(out.Commands, api.Command{Op: api.OpRecord, Kind: r.Kind, ID: r.Meta.ID, Organization: r.Meta.Organization, Project: r.Meta.Project, Data: api.Encode(r.Spec)})
	}
	out.Commands = append(out.Commands, others...)
	return out
}

// sameJSON compares the content of records, not their encoding.
var sameJSON = cmp.Comparer(func(a, b api.Command) bool {
	if a.Op == api.OpRecord && b.Op == api.OpRecord {
		x, errX := api.RecordOf(a, time.Time{})
		y, errY := api.RecordOf(b, time.Time{})
		return errX == nil && errY == nil && cmp.Equal(x, y)
	}
	return cmp.Equal(a, b)
})
