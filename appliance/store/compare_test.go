package store

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// compareAll walks through all tables once and answers who was found to differ.
func compareAll(t *testing.T, c *cluster) (different []string) {
	t.Helper()
	s := c.store(c.leader())
	for from, rounds := (Place{}), 0; ; rounds++ {
		index, err := s.Compare(t.Context(), s.LeadTerm(), from)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]Part{}
		for _, id := range c.ids() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			p, err := c.store(id).Part(ctx, index)
			cancel()
			if err != nil {
				t.Fatal(id, err)
			}
			all[id] = p
		}
		nodes, agreed := Differing(all)
		if !agreed {
			t.Fatalf("no part that most have: %v", all)
		}
		different = append(different, nodes...)
		if from = all[c.leader()].Next; from.Bucket == "" {
			return different
		}
	}
}

// A node whose disk has changed what it was given is found, and does not open any
// more.
func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 20)
	if got := compareAll(t, c); len(got) != 0 {
		t.Fatalf("nodes that are alike differ: %v", got)
	}
	bad := c.follower()
	if err := c.store(bad).tables.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketObjects)
		k, v := b.Cursor().First()
		return b.Put(bytes.Clone(k), bytes.Replace(v, []byte(`"n":20`), []byte(`"n":21`), 1))
	}); err != nil {
		t.Fatal(err)
	}
	if got := compareAll(t, c); !slices.Equal(got, []string{bad}) {
		t.Fatalf("different: %v, want %s", got, bad)
	}
	if err := c.store(bad).Differs(Part{Index: 7, From: Place{Bucket: "objects", Key: []byte("k")}}); err != nil {
		t.Fatal(err)
	}
	c.stop(bad)
	refused(t, one(c.options.Dir+"/"+bad, bad), `tables.db: what it has from objects "k" on is not what most nodes have, at entry 7`)
}

// Parts follow each other without a gap, and say the same in whatever pieces the
// log was applied.
func TestParts(t *testing.T) {
	whole, pieces := bare(t), bare(t)
	var all []entry
	for k := 1; k <= 40; k++ {
		all = append(all, logEntry(t, uint64(k), crashBatch(k%crashClients, k)))
	}
	mustApply(t, whole, all...)
	for _, e := range all {
		mustApply(t, pieces, e)
	}
	read := func(tb *tables, limit int64) (sums []string, bytes int64) {
		t.Helper()
		if err := tb.read(func(v view) error {
			for from := (Place{}); ; {
				p := v.part(40, from, limit)
				sums, bytes = append(sums, string(p.Sum)), bytes+p.Bytes
				if from = p.Next; from.Bucket == "" {
					return nil
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		return sums, bytes
	}
	_, want := read(whole, 1<<30)
	for _, limit := range []int64{1, 1000, 1 << 20} {
		a, n := read(whole, limit)
		b, _ := read(pieces, limit)
		if n != want || !slices.Equal(a, b) {
			t.Errorf("parts of %d bytes: %d in all, want %d; %d sums and %d, the same: %v", limit, n, want, len(a), len(b), slices.Equal(a, b))
		}
	}
}

func TestDiffering(t *testing.T) {
	of := func(sums ...string) map[string]Part {
		all := map[string]Part{}
		for i, s := range sums {
			all[string(rune('a'+i))] = Part{Sum: []byte(s)}
		}
		return all
	}
	for _, c := range []struct {
		all    map[string]Part
		want   []string
		agreed bool
	}{
		{of("x"), nil, true}, {of("x", "x", "x"), nil, true}, {of("x", "y", "x"), []string{"b"}, true},
		{of("x", "y"), nil, false}, {of("x", "y", "z"), nil, false}, {of(), nil, false}, {of("x", "x", "y", "y"), nil, false},
	} {
		if got, agreed := Differing(c.all); !slices.Equal(got, c.want) || agreed != c.agreed {
			t.Errorf("%v: %v, %v", c.all, got, agreed)
		}
	}
}

// BenchmarkPart is what one comparison costs a node, beside its other work.
func BenchmarkPart(b *testing.B) {
	tb := bare(b)
	var all []entry
	for k := 1; k <= 20_000; k++ {
		all = append(all, logEntry(b, uint64(k), crashBatch(k%crashClients, k)))
	}
	for part := range slices.Chunk(all, 256) {
		mustApply(b, tb, part...)
	}
	b.ResetTimer()
	for b.Loop() {
		if err := tb.read(func(v view) error {
			p := v.part(1, Place{}, partBytes)
			b.SetBytes(p.Bytes)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}
