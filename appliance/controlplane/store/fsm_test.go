package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

// bare are tables without a log.
func bare(t testing.TB) *tables {
	t.Helper()
	tb, err := openTables(filepath.Join(t.TempDir(), "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	tb.db.NoSync = true
	t.Cleanup(func() { tb.close() })
	return tb
}

func logEntry(t testing.TB, index uint64, b api.Batch) entry {
	t.Helper()
	raw, err := encodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	return entry{index, raw}
}

func mustApply(t testing.TB, tb *tables, entries ...entry) ([]answer, int64) {
	t.Helper()
	answers, revision, _, err := tb.apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	return answers, revision
}

// One transaction of many entries: a refused batch among them leaves nothing.
func TestGroupWithRefusedBatch(t *testing.T) {
	bad := crashBatch(1, 1)
	bad.Commands = append(bad.Commands, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-none", Data: []byte(`{}`)})
	tb := bare(t)
	answers, revision := mustApply(t, tb, logEntry(t, 1, crashBatch(0, 1)), logEntry(t, 2, bad), logEntry(t, 3, crashBatch(2, 1)))
	if revision != 4 || answers[0].refused != nil || answers[1].refused == nil || answers[2].refused != nil {
		t.Errorf("revision %d, answers %+v", revision, answers)
	}
	err := tb.read(func(v view) error {
		if o, err := v.object(key{api.KindFlavor, "flv-a1"}); o != nil || err != nil {
			t.Errorf("half a batch: %v, %v", o, err)
		}
		if n := v.applied(); n != 3 {
			t.Errorf("applied %d", n)
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
	var entries []entry
	const n = rememberBatches + 100
	for k := 1; k <= n; k++ {
		entries = append(entries, logEntry(t, uint64(k), put(k)))
	}
	mustApply(t, tb, entries...)
	kept, changes := 0, 0
	err := tb.read(func(v view) error {
		kept, changes = v.tx.Bucket(bucketBatches).Stats().KeyN, v.tx.Bucket(bucketChanges).Stats().KeyN
		return nil
	})
	if err != nil || kept != rememberBatches || changes != keepChanges {
		t.Errorf("%d batches and %d changes are kept, %v", kept, changes, err)
	}
	if _, r := mustApply(t, tb, logEntry(t, n+1, put(n-rememberBatches+1))); r != n {
		t.Errorf("the oldest batch that is remembered was applied again")
	}
	if _, r := mustApply(t, tb, logEntry(t, n+2, put(n-rememberBatches))); r != n+1 {
		t.Errorf("a batch that is forgotten was not applied")
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
	err := tb.read(func(v view) error {
		kept, counted := uint64(0), v.tx.Bucket(bucketBatchSeq).Sequence()
		return v.tx.Bucket(bucketBatches).ForEach(func(_, raw []byte) error {
			if kept += uint64(len(raw) - 8); kept > rememberBytes || kept > counted {
				t.Fatalf("%d bytes are kept, %d counted", kept, counted)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// What JSON may escape must come back as it was, or it would look changed.
func TestSameSpecIsNoChange(t *testing.T) {
	s := open(t, Options{})
	b := api.Batch{Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "x",
		Expect: api.AnyRevision, Data: []byte(`{"userData": "<a href=\"x&y\">\u2028é"}`)}}}
	first, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Apply(t.Context(), b)
	if err != nil || s.Revision() != 1 {
		t.Errorf("revision %d, %v", s.Revision(), err)
	}
	got, err := s.Get(t.Context(), api.KindInstance, "ins-1")
	if d := cmp.Diff(first[0], got) + cmp.Diff(first, second); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestLimitsOfABatch(t *testing.T) {
	s := open(t, Options{})
	put := api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Data: []byte(`{}`)}
	for name, c := range map[string]struct {
		b    api.Batch
		code api.Code
	}{
		"many":  {api.Batch{Commands: make([]api.Command, maxCommands+1)}, api.CodeTooLarge},
		"large": {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: "x", Data: []byte(`"` + strings.Repeat("x", maxBatchBytes) + `"`)}}}, api.CodeTooLarge},
		"nul":   {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: "a\x00b", Data: put.Data}}}, api.CodeInvalid},
		"long":  {api.Batch{Commands: []api.Command{{Op: 1, Kind: "Flavor", ID: strings.Repeat("x", 600), Data: put.Data}}}, api.CodeInvalid},
		"id":    {api.Batch{ID: strings.Repeat("x", 600), Commands: []api.Command{put}}, api.CodeInvalid},
	} {
		if _, err := s.Apply(t.Context(), c.b); api.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Revision() != 0 {
		t.Error("something was written")
	}
}

// A watcher that stops reading loses its place when the change log has moved
// on; it is told by the end of its channel, and a new watch brings everything.
func TestSlowWatcher(t *testing.T) {
	s := open(t, Options{})
	if _, err := s.Apply(t.Context(), crashBatch(0, 1)); err != nil {
		t.Fatal(err)
	}
	events, err := s.Watch(t.Context(), s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	k := 2
	for written := 0; written < keepChanges+10*watchBuffer; k++ {
		b := api.Batch{}
		for range 300 {
			b.Commands = append(b.Commands, crashBatch(0, k).Commands[0])
			k++
		}
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		written += 300
	}
	last, n := int64(2), 0
	for e := range events {
		if e.Revision != last+1 {
			t.Fatalf("revision %d after %d", e.Revision, last)
		}
		last, n = e.Revision, n+1
	}
	if last == s.Revision() || n == 0 {
		t.Errorf("%d events, the last %d of %d: the watcher was not slow", n, last, s.Revision())
	}
	events, err = s.Watch(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	for e := range events {
		if e.Type == api.EventSync {
			if e.Revision != s.Revision() {
				t.Errorf("sync at %d, want %d", e.Revision, s.Revision())
			}
			break
		}
		if e.Revision != 0 {
			t.Fatalf("%+v in a snapshot", e)
		}
	}
}

func TestWatchKinds(t *testing.T) {
	s := open(t, Options{})
	write := func(k int) {
		t.Helper()
		b := crashBatch(0, k)
		b.Commands = append(b.Commands, api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: fmt.Sprintf("vol-%08d", k), Data: []byte(`{}`)})
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for k := 1; k <= 3; k++ {
		write(k)
	}
	events, err := s.WatchKinds(t.Context(), 0, api.KindVolume)
	if err != nil {
		t.Fatal(err)
	}
	for k := 4; k <= 100; k++ {
		write(k)
	}
	want := func(typ api.EventType, revision int64) {
		t.Helper()
		e := <-events
		if e.Type != typ || e.Revision != revision || (typ != api.EventSync && e.Object.Kind != api.KindVolume) {
			t.Fatalf("%s of %s at %d, want %s at %d", e.Type, e.Object.Kind, e.Revision, typ, revision)
		}
	}
	for range 3 {
		want(api.EventPut, 0)
	}
	want(api.EventSync, 9)
	for k := 4; k <= 100; k++ {
		want(api.EventPut, int64(3*k))
	}
}

// A snapshot that is cut or changed anywhere is refused and changes nothing.
func TestDamagedSnapshot(t *testing.T) {
	tb := bare(t)
	mustApply(t, tb, logEntry(t, 1, crashBatch(0, 1)))
	v, end, err := tb.begin()
	if err != nil {
		t.Fatal(err)
	}
	var good bytes.Buffer
	if err := (&snapshot{view: v}).writeTo(&good); err != nil {
		t.Fatal(err)
	}
	end()

	target := bare(t)
	mustApply(t, target, logEntry(t, 1, crashBatch(1, 1)))
	intact := func() bool {
		ok := false
		_ = target.read(func(v view) error {
			o, err := v.object(key{api.KindFlavor, "flv-a1"})
			ok = err == nil && o != nil
			return nil
		})
		return ok
	}
	for at := 0; at < good.Len(); at += 1 + at/9 {
		if err := restore(target, bytes.NewReader(good.Bytes()[:at])); err == nil || !intact() {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if at >= 12 && at < 16 { // reserved
			continue
		}
		bad := bytes.Clone(good.Bytes())
		bad[at] ^= 0x10
		if err := restore(target, bytes.NewReader(bad)); err == nil || !intact() {
			t.Fatalf("bit changed at %d: %v", at, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(target.path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := restore(target, &good); err != nil || intact() {
		t.Errorf("a good snapshot: %v", err)
	}
}

// A log entry of another version must stop the node, not be skipped.
func TestUnknownEntryStops(t *testing.T) {
	_, _, _, err := bare(t).apply([]entry{{1, []byte{99, '{', '}'}}})
	var old *TooOld
	if !errors.As(err, &old) || !strings.Contains(err.Error(), "install the cluster's release on this node") {
		t.Errorf("applied: %v", err)
	}
	f, err := newFSM(bare(t))
	if err != nil {
		t.Fatal(err)
	}
	why := make(chan error, 1)
	f.fail = func(err error) { why <- err; close(f.closing) }
	f.ApplyBatch([]*raft.Log{{Index: 1, Type: raft.LogCommand, Data: []byte{99, '{', '}'}}})
	if err := <-why; !errors.As(err, &old) {
		t.Errorf("the store's life ends with %v", err)
	}
	if applied, err := f.tables.appliedIndex(); applied != 0 || err != nil {
		t.Errorf("applied up to %d, %v", applied, err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for _, b := range []api.Batch{{}, crashBatch(0, 1), claimBatch("flv-1", "a"), claimBatch("flv-1"), useBatch(1)} {
		raw, err := encodeBatch(b)
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
		if checkBatch(batch) != nil {
			return
		}
		again, err := encodeBatch(batch)
		if err != nil {
			return // a time outside of years 0 to 9999
		}
		b2, err := decodeBatch(again, interned{})
		if err != nil {
			t.Fatal(err)
		}
		if other := proposed(t, b2); !cmp.Equal(batch.Commands, other.Commands, sameJSON) || len(b2.records) < len(b.records) {
			t.Fatal(cmp.Diff(batch.Commands, other.Commands, sameJSON))
		}
		index++
		for _, raw := range [][]byte{raw, again} {
			if _, _, _, err := tb.apply([]entry{{index, raw}}); err != nil {
				t.Fatal(err)
			}
			index++
		}
	})
}

// proposed is the batch that an entry was made of.
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

// sameJSON compares what a record says, not how.
var sameJSON = cmp.Comparer(func(a, b api.Command) bool {
	if a.Op == api.OpRecord && b.Op == api.OpRecord {
		x, errX := api.RecordOf(a, time.Time{})
		y, errY := api.RecordOf(b, time.Time{})
		return errX == nil && errY == nil && cmp.Equal(x, y)
	}
	return cmp.Equal(a, b)
})
