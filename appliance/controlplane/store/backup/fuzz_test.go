package backup

import (
	"bytes"
	"crypto/sha256"
	"io"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// FuzzBackup reads what may be a backup: it must not panic or use much memory, and what
// it accepts has a correct checksum and is valid content of tables.
func FuzzBackup(f *testing.F) {
	db := scratch(f)
	var b bytes.Buffer
	if err := db.Update(func(tx *bbolt.Tx) error {
		raw, err := state.EncodeBatch(statetest.Batch(0, 1))
		if err == nil {
			_, err = state.Apply(tx, state.Program{}, []state.Entry{{Index: 1, Data: raw}})
		}
		if err == nil {
			err = Write(f.Context(), &b, state.ViewOf(tx), Info{Format: state.Level, Revision: 2, Cluster: []byte(`{"a":1}`)})
		}
		return err
	}); err != nil {
		f.Fatal(err)
	}
	into := scratch(f)
	if info, err := fillUncommitted(into, bytes.NewReader(b.Bytes())); err != nil || info.Revision != 2 {
		f.Fatalf("fill from a valid backup: info %+v, %v; want revision 2", info, err)
	}
	whole := b.Bytes()
	good := whole[:len(whole)-sha256.Size]
	f.Add(good, true)
	f.Add(good[:40], true)
	f.Add(whole, false)
	f.Add([]byte(magic), true)
	f.Fuzz(func(t *testing.T, raw []byte, sign bool) {
		if sign { // so that the code behind the checksum is reached
			sum := sha256.Sum256(raw)
			raw = append(bytes.Clone(raw), sum[:]...)
		}
		if _, err := fillUncommitted(into, bytes.NewReader(raw)); err != nil && api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("fill from a damaged backup: %v, want code %s", err, api.CodeInvalid)
		}
	})
}

// scratch returns new tables.
func scratch(t testing.TB) *bbolt.DB {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "tables.db"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := state.Prepare(db.View, db.Update); err != nil {
		t.Fatal(err)
	}
	return db
}

// fillUncommitted fills tables with a backup, and rolls the transaction back.
func fillUncommitted(db *bbolt.DB, r io.Reader) (Info, error) {
	tx, err := db.Begin(true)
	if err != nil {
		return Info{}, err
	}
	defer func() { _ = tx.Rollback() }()
	return Fill(func(f func(*bbolt.Tx) error) error { return f(tx) }, r, 1)
}
