package store

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// While an older release is a member the leader checks references before a batch enters
// the log.
func TestReferencesBelowTheirLevel(t *testing.T) {
	s := open(t, Options{})
	if err := s.tables.db.Update(func(tx *bbolt.Tx) error { // as before the cluster reached the level
		if err := tx.DeleteBucket([]byte("references")); err != nil {
			return err
		}
		return tx.Bucket([]byte("meta")).Put([]byte("level"), binary.BigEndian.AppendUint64(nil, 7))
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range append(statetest.References(), api.Batch{Commands: []api.Command{statetest.Record(0, 1)}}, statetest.Quotas(), api.Batch{Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindProject, ID: "prj-1", Expect: api.AnyRevision}}}) {
		code := api.Code("done")
		if _, err := s.Apply(t.Context(), b); err != nil {
			code = api.CodeOf(err)
		}
		got = append(got, string(code))
	}
	want := "not_found done in_use in_use done in_use done not_found done done done in_use"
	if strings.Join(got, " ") != want {
		t.Errorf("outcomes %q, want %q", strings.Join(got, " "), want)
	}
	if indexOf(t, s.tables) != "none" {
		t.Errorf("index of references = %q, want none", indexOf(t, s.tables))
	}
}

// The index of references is the same after a restore and in a snapshot.
func TestReferenceIndexIsCopied(t *testing.T) {
	s := open(t, Options{})
	for _, b := range statetest.References() {
		_, err := s.Apply(t.Context(), b)
		if code := api.CodeOf(err); err != nil && code != api.CodeInUse && code != api.CodeNotFound {
			t.Fatal(err)
		}
	}
	want := indexOf(t, s.tables)
	if !strings.Contains(want, "Snapshot/snap-none//Volume/vol-r") {
		t.Errorf("index lacks the snapshot of volume vol-r:\n%s", want)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := RestoreInto(dir, "node-a", bytes.NewReader(backupOf(t, s))); err != nil {
		t.Fatal(err)
	}
	if got := indexOf(t, open(t, Options{Dir: dir}).tables); got != want {
		t.Errorf("index after a restore:\n%s\nwant\n%s", got, want)
	}
	copied := filepath.Join(t.TempDir(), "tables.db")
	receiver, err := openTables(copied)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.close() })
	var raw bytes.Buffer
	tx, end, err := s.tables.beginTx()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := (&snapshot{tables: s.tables, tx: tx}).writeTo(&raw); err != nil {
		t.Fatal(err)
	}
	if err := restore(receiver, &raw); err != nil {
		t.Fatal(err)
	}
	if got := indexOf(t, receiver); got != want {
		t.Errorf("index after a snapshot:\n%s\nwant\n%s", got, want)
	}
}
