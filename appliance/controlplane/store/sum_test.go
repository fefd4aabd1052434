package store

import (
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// sum returns a digest of the tables' content.
func (t *tables) sum() (sum string, err error) {
	err = t.db.View(func(tx *bbolt.Tx) error { sum, err = statetest.Sum(tx); return err })
	return sum, err
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
