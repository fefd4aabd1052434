package state

import (
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// tables is a state machine in a plain bbolt file.
type tables struct {
	path    string
	db      *bbolt.DB
	program Program
}

func openTables(path string) (*tables, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	return &tables{path: path, db: db}, Prepare(db.View, db.Update)
}

func (tb *tables) close() error { return tb.db.Close() }

func (tb *tables) apply(entries []Entry) (out Outcome, err error) {
	err = tb.db.Update(func(tx *bbolt.Tx) (err error) { out, err = Apply(tx, tb.program, entries); return err })
	return out, err
}

func (tb *tables) read(fn func(View) error) error {
	return tb.db.View(func(tx *bbolt.Tx) error { return fn(ViewOf(tx)) })
}

// sum returns a digest of the tables' content.
func (tb *tables) sum() (sum string, err error) {
	err = tb.db.View(func(tx *bbolt.Tx) error { sum, err = statetest.Sum(tx); return err })
	return sum, err
}

// bare returns new tables.
func bare(t testing.TB) *tables {
	t.Helper()
	tb, err := openTables(filepath.Join(t.TempDir(), "tables.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tb.close() })
	return tb
}

func logEntry(t testing.TB, index uint64, b api.Batch) Entry {
	t.Helper()
	raw, err := EncodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{index, raw}
}

func mustApply(t testing.TB, tb *tables, entries ...Entry) ([]Answer, int64) {
	t.Helper()
	out, err := tb.apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	return out.Answers, out.Revision
}

// contents returns all keys and values of tables, by bucket.
func contents(t *testing.T, tb *tables, but ...string) (all map[string]string) {
	t.Helper()
	if err := tb.db.View(func(tx *bbolt.Tx) (err error) { all, err = statetest.Contents(tx, but...); return err }); err != nil {
		t.Fatal(err)
	}
	return all
}

func sameContents(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, d := range statetest.Differences(got, want) {
		t.Errorf("%s: %s", what, d)
	}
}

// indexOf returns the index of references as text, or "none" before it exists.
func indexOf(t *testing.T, tb *tables) (out string) {
	t.Helper()
	if err := tb.db.View(func(tx *bbolt.Tx) error { out = statetest.ReferenceIndex(tx); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}
