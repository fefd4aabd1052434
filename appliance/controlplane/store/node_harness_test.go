package store

import (
	"path/filepath"
	"testing"

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
	return entry{index: index, data: raw}
}

func mustApply(t testing.TB, tb *tables, entries ...entry) ([]answer, int64) {
	t.Helper()
	out, err := tb.apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	return out.answers, out.revision
}
