package store

import (
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// bare returns tables without a log.
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

func logEntry(t testing.TB, index uint64, b api.Batch) state.Entry {
	t.Helper()
	raw, err := state.EncodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	return state.Entry{Index: index, Data: raw}
}

func mustApply(t testing.TB, tb *tables, entries ...state.Entry) ([]state.Answer, int64) {
	t.Helper()
	out, err := tb.apply(entries)
	if err != nil {
		t.Fatal(err)
	}
	return out.Answers, out.Revision
}
