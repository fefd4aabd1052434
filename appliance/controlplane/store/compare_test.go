package store

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// compareAll compares all tables once and returns the nodes that differ.
func compareAll(t *testing.T, c *cluster) (different []string) {
	t.Helper()
	s := c.store(c.leader())
	for from, rounds := (state.Place{}), 0; ; rounds++ {
		index, err := s.Compare(t.Context(), s.LeaderTerm(), from)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]state.Part{}
		for _, id := range c.ids() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			p, err := c.store(id).Part(ctx, index)
			cancel()
			if err != nil {
				t.Fatalf("part of %s at entry %d: %v", id, index, err)
			}
			all[id] = p
		}
		nodes, agreed := state.Differing(all)
		if !agreed {
			t.Fatalf("no part has a majority: %v", all)
		}
		different = append(different, nodes...)
		if from = all[c.leader()].Next; from.Bucket == "" {
			return different
		}
	}
}

// A node whose disk has changed stored data is detected, and cannot be opened again.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 20)
	if got := compareAll(t, c); len(got) != 0 {
		t.Fatalf("differing nodes = %v, want none", got)
	}
	bad := c.follower()
	if err := c.store(bad).tables.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("objects"))
		k, v := b.Cursor().First()
		return b.Put(bytes.Clone(k), bytes.Replace(v, []byte(`"n":20`), []byte(`"n":21`), 1))
	}); err != nil {
		t.Fatal(err)
	}
	if got := compareAll(t, c); !slices.Equal(got, []string{bad}) {
		t.Fatalf("differing nodes = %v, want %s", got, bad)
	}
	if err := c.store(bad).Differs(state.Part{Index: 7, From: state.Place{Bucket: "objects", Key: []byte("k")}}); err != nil {
		t.Fatal(err)
	}
	c.stop(bad)
	refused(t, one(c.options.Dir+"/"+bad, bad), `tables.db: its content from objects "k" on differs from that of most nodes, at log entry 7`)
}

// Every node knows the place where comparing continues, also after a restart: a new
// leader does not start at the beginning.
func TestComparingGoesOn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	writeRange(t, s, 1, 3)
	from := state.Place{Bucket: "objects"}
	index, err := s.Compare(t.Context(), s.LeaderTerm(), from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Part(t.Context(), index); err != nil {
		t.Fatal(err)
	}
	writeRange(t, s, 4, 4) // otherwise the entry's part, which ends at the tables' end, would be computed again after the restart
	s.fsm.parts.add(state.Part{Index: index + 1, From: from, Next: state.Place{Bucket: "objects", Key: []byte("k\x00")}})
	for range 2 {
		if got := s.CompareFrom(); got.Bucket != "objects" || string(got.Key) != "k\x00" {
			t.Fatalf("comparing continues at %v, want objects \"k\\x00\"", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, Options{Dir: dir})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "compared"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := open(t, Options{Dir: dir}).CompareFrom(); got.Bucket != "" || got.Key != nil {
		t.Errorf("comparing with a torn file continues at %v, want the beginning", got)
	}
}

// A node that applies a comparison again when it starts, with newer tables, does not
// compute a digest: it would be of a state that differs from the others'.
func TestReplayedComparison(t *testing.T) {
	tb := bare(t)
	f, err := newFSM(tb)
	if err != nil {
		t.Fatal(err)
	}
	comparing, err := state.EncodeCompare(state.Place{})
	if err != nil {
		t.Fatal(err)
	}
	compare := &raft.Log{Index: 2, Type: raft.LogCommand, Data: comparing}
	later := logEntry(t, 3, statetest.Batch(0, 1))
	f.ApplyBatch([]*raft.Log{compare})
	eventually(t, "the part is digested", func() bool { _, ok := f.parts.at(2); return ok })
	f.ApplyBatch([]*raft.Log{{Index: 3, Type: raft.LogCommand, Data: later.Data}})
	again, err := newFSM(tb)
	if err != nil {
		t.Fatal(err)
	}
	again.ApplyBatch([]*raft.Log{compare})
	if err := tb.close(); err != nil { // waits for readers
		t.Fatal(err)
	}
	if _, ok := again.parts.at(2); ok {
		t.Error("the part at the replayed entry is the digest of later tables, want none")
	}
}

// All tables are compared once a day, whatever their size, and no more often than the
// limit on the cost allows.
func TestComparePace(t *testing.T) {
	const most = 2 * time.Minute
	for size := int64(1); size <= 100<<30; size = size*3/2 + 1 {
		every := ComparePace(size, most)
		parts := (size + state.PartBytes - 1) / state.PartBytes
		if whole := time.Duration(parts) * every; whole > 24*time.Hour || every > most || every < compareLeast {
			t.Errorf("ComparePace(%d): a part every %s, all parts in %s; want %s to %s, and at most a day", size, every, whole, compareLeast, most)
		}
	}
	for _, c := range []struct {
		size int64
		most time.Duration
		want time.Duration
	}{{0, most, most}, {8 << 20, most, most}, {4 << 30, most, most}, {8 << 30, most, 20 * time.Hour / 1024}, {1 << 40, most, compareLeast}, {1 << 40, time.Second, time.Second}} {
		if got := ComparePace(c.size, c.most); got != c.want {
			t.Errorf("ComparePace(%d, %s) = %s, want %s", c.size, c.most, got, c.want)
		}
	}
}

func TestDiffering(t *testing.T) {
	of := func(sums ...string) map[string]state.Part {
		all := map[string]state.Part{}
		for i, s := range sums {
			all[string(rune('a'+i))] = state.Part{Sum: []byte(s)}
		}
		return all
	}
	for _, c := range []struct {
		all    map[string]state.Part
		want   []string
		agreed bool
	}{
		{of("x"), nil, true}, {of("x", "x", "x"), nil, true}, {of("x", "y", "x"), []string{"b"}, true},
		{of("x", "y"), nil, false}, {of("x", "y", "z"), nil, false}, {of(), nil, false}, {of("x", "x", "y", "y"), nil, false},
	} {
		if got, agreed := state.Differing(c.all); !slices.Equal(got, c.want) || agreed != c.agreed {
			t.Errorf("Differing(%v) = %v, %v; want %v, %v", c.all, got, agreed, c.want, c.agreed)
		}
	}
}

// BenchmarkPart measures the cost of one comparison for a node.
func BenchmarkPart(b *testing.B) {
	tb := bare(b)
	var all []state.Entry
	for k := 1; k <= 20_000; k++ {
		all = append(all, logEntry(b, uint64(k), statetest.Batch(k%statetest.Clients, k)))
	}
	for part := range slices.Chunk(all, 256) {
		mustApply(b, tb, part...)
	}
	b.ResetTimer()
	for b.Loop() {
		if err := tb.read(func(v state.View) error {
			p := v.Part(1, state.Place{}, state.PartBytes)
			b.SetBytes(p.Bytes)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApply measures how much a comparison slows down commands that are applied at
// the same time: groups of 16 commands with one fsync each, alone, and while parts are
// digested without a pause, which is thousands of times as often as in operation.
// max-ms is the longest that a group took.
func BenchmarkApply(b *testing.B) {
	for _, beside := range []string{"alone", "compared"} {
		b.Run(beside, func(b *testing.B) {
			tb := bare(b)
			var all []state.Entry
			for k := 1; k <= 20_000; k++ {
				all = append(all, logEntry(b, uint64(k), statetest.Batch(k%statetest.Clients, k)))
			}
			for part := range slices.Chunk(all, 256) {
				mustApply(b, tb, part...)
			}
			tb.db.NoSync = false
			end, sums := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				for ; beside == "compared"; n++ {
					select {
					case <-end:
						sums <- n
						return
					default:
					}
					_ = tb.read(func(v state.View) error { v.Part(1, state.Place{}, state.PartBytes); return nil })
				}
				<-end
				sums <- n
			}()
			k, longest := len(all), time.Duration(0)
			for b.Loop() {
				var group []state.Entry
				for range 16 {
					k++
					group = append(group, logEntry(b, uint64(k), statetest.Batch(k%statetest.Clients, k)))
				}
				began := time.Now()
				mustApply(b, tb, group...)
				longest = max(longest, time.Since(began))
			}
			close(end)
			b.ReportMetric(float64(<-sums), "parts")
			b.ReportMetric(float64(longest.Milliseconds()), "max-ms")
		})
	}
}
