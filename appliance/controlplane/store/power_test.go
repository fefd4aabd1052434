package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// A power cut leaves any part of what was written since the last fsync. bbolt writes
// the pages of a transaction, syncs, writes one of its two meta pages, syncs; a batch
// does that to log.db and then to tables.db. From the files before and after one batch
// this test builds what a cut may leave at each of these four steps: any subset of the
// changed sectors, or the meta page up to any byte.
func TestPowerCut(t *testing.T) {
	subsets, cuts := 25, []int{0, 1, 7, 8, 15, 16, 20, 24, 31, 32, 40, 47, 48, 56, 63, 64, 65, 71, 72, 79, 80, 90, 200}
	if testing.Short() {
		subsets, cuts = 2, []int{0, 33, 60, 79}
	}
	const seed = 7
	random := rand.New(rand.NewPCG(seed, 0))
	before, after := oneBatch(t)
	found := map[int]int{}
	for _, file := range []string{"log.db", "tables.db"} {
		a, b := before[file], after[file]
		if bytes.Equal(a, b) {
			t.Fatalf("the batch changed nothing in %s, want a change", file)
		}
		b = b[:len(b):len(b)]
		a = append(bytes.Clone(a), make([]byte, max(0, len(b)-len(a)))...) // growing is synced first
		base := clone(before)
		if file == "tables.db" {
			base["log.db"] = after["log.db"]
		}
		for i := range subsets {
			base[file] = someSectors(random, a, b)
			found[checkAfterCut(t, fmt.Sprintf("%s, sectors %d", file, i), base, file == "tables.db")]++
		}
		pages := bytes.Clone(b)
		copy(pages[:metaBytes], a[:metaBytes])
		for _, cut := range cuts {
			torn := bytes.Clone(pages)
			for meta := 0; meta < metaBytes; meta += pageBytes {
				copy(torn[meta:meta+cut], b[meta:meta+cut])
			}
			base[file] = torn
			found[checkAfterCut(t, fmt.Sprintf("%s, meta to byte %d", file, cut), base, file == "tables.db")]++
		}
	}
	if found[60] == 0 || found[61] == 0 {
		t.Errorf("last batches after the cuts = %v, want both 60 and 61 among them", found)
	}
}

const (
	pageBytes   = 4096
	metaBytes   = 2 * pageBytes
	sectorBytes = 512
)

type files map[string][]byte

func clone(f files) files {
	c := files{}
	for name, b := range f {
		c[name] = b
	}
	return c
}

// oneBatch returns the directory before and after a batch that rewrites inner pages,
// after other batches.
func oneBatch(t *testing.T) (before, after files) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	for k := 1; k <= 60; k++ {
		for client := range 2 {
			if _, err := s.Apply(context.Background(), statetest.Batch(client, k)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before = readFiles(t, dir)
	if _, err := s.Apply(context.Background(), statetest.Batch(0, 61)); err != nil {
		t.Fatal(err)
	}
	after = readFiles(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return before, after
}

func readFiles(t *testing.T, dir string) files {
	f := files{}
	for _, name := range []string{"log.db", "tables.db", "vote"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f[name] = bytes.TrimRight(raw, "\x00") // the files are long and sparse
		f[name] = append(f[name], make([]byte, (pageBytes-len(f[name])%pageBytes)%pageBytes)...)
	}
	return f
}

func (f files) write(t *testing.T, dir string) {
	for name, b := range f {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// someSectors returns a with some of b's sectors; the meta pages are a's.
func someSectors(random *rand.Rand, a, b []byte) []byte {
	out := bytes.Clone(a)
	share := random.Float64()
	for at := metaBytes; at < len(b); at += sectorBytes {
		if random.Float64() < share {
			copy(out[at:at+sectorBytes], b[at:at+sectorBytes])
		}
	}
	return out
}

// checkAfterCut opens the files and returns the number of the last batch found.
func checkAfterCut(t *testing.T, what string, f files, logged bool) int {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	f.write(t, dir)
	s, err := Open(Options{Dir: dir, NodeID: "node-a", Reserve: 1})
	if err != nil {
		t.Errorf("%s: open: %v", what, err)
		return 0
	}
	defer s.Close()
	a, _, errA := crashNumber(s, "a", 0)
	b, _, errB := crashNumber(s, "b", 0)
	if errA != nil || errB != nil || a != b || a < 60 || a > 61 || (logged && a != 61) {
		t.Errorf("%s: numbers of the two halves = %d and %d (%v, %v), want them equal, 60 or 61, and 61 if logged (%v)", what, a, b, errA, errB, logged)
	}
	if want := int64(2 * (60 + a)); s.Revision() != want {
		t.Errorf("%s: revision %d, want %d", what, s.Revision(), want)
	}
	if records, sum, err := crashUsed(s, 0); records != a || sum != int64(a)*int64(a+1)/2 || err != nil {
		t.Errorf("%s: %d records with a sum of %d, %v; want %d with %d", what, records, sum, err, a, int64(a)*int64(a+1)/2)
	}
	if _, err := s.Apply(context.Background(), statetest.Batch(0, a+1)); err != nil {
		t.Errorf("%s: apply the next batch: %v", what, err)
	}
	return a
}

// A log that lacks entries that the tables contain is not this node's: using it would
// assign numbers twice.
func TestLogBehindTablesIsRefused(t *testing.T) {
	before, after := oneBatch(t)
	mixed := clone(after)
	mixed["log.db"] = before["log.db"]
	dir := t.TempDir()
	mixed.write(t, dir)
	if s, err := Open(Options{Dir: dir, NodeID: "node-a"}); err == nil {
		s.Close()
		t.Error("a log that ends before the tables was opened, want an error")
	}
}

// The vote file keeps the state before a write, wherever a power cut tore it.
func TestVoteTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vote")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func() []byte {
		t.Helper()
		raw, err := os.ReadFile(path)
		must(err)
		return raw
	}
	s, err := openStable(path)
	must(err)
	must(s.SetUint64([]byte("term"), 1))
	must(s.Set([]byte("vote"), []byte("a")))
	before := read()
	must(s.SetUint64([]byte("term"), 2))
	after := read()
	must(s.Close())
	for cut := 0; cut <= slotSize; cut++ {
		torn := bytes.Clone(before)
		for slot := 0; slot < 2*slotSize; slot += slotSize {
			copy(torn[slot:slot+cut], after[slot:slot+cut])
		}
		must(os.WriteFile(path, torn, 0o600))
		s, err := openStable(path)
		if err != nil {
			t.Fatalf("open after a cut at byte %d: %v", cut, err)
		}
		term, err := s.GetUint64([]byte("term"))
		vote, err2 := s.Get([]byte("vote"))
		if err != nil || err2 != nil || term < 1 || term > 2 || string(vote) != "a" || (cut == slotSize && term != 2) {
			t.Fatalf("after a cut at byte %d: term %d, vote %q, %v, %v; want term 1 or 2 and vote \"a\"", cut, term, vote, err, err2)
		}
		s.Close()
	}
	must(os.WriteFile(path, bytes.Repeat([]byte{1}, 2*slotSize), 0o600))
	if _, err := openStable(path); err == nil {
		t.Error("open a vote file of garbage succeeded, want an error")
	}
}
