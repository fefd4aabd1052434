package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// A new cluster begins with its level and its ID, which all members learn and keep in
// their watermarks.
func TestClusterHasAnID(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	_, want, err := c.store(c.leader()).Settled()
	if err != nil || want == "" {
		t.Fatalf("ID of the cluster = %q, %v; want one", want, err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" knows the cluster's ID", func() bool {
			level, got, err := c.store(id).Settled()
			return err == nil && level == state.Level && got == want
		})
	}
	c.close()
	other := open(t, Options{NodeID: "node-1"})
	_, id, err := other.Settled()
	if err != nil || id == "" || id == want {
		t.Errorf("ID of another cluster = %q, %v; want one other than %q", id, err, want)
	}
	other.Close()
	dir := filepath.Join(c.options.Dir, "node-1")
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other.options.Dir))); err != nil {
		t.Fatal(err)
	}
	refused(t, one(dir, "node-1"), "it belongs to cluster "+id+", but this node is a member of "+want)
}

// A cluster from before there were levels gets one when all members are known to
// support it.
func TestRaiseLevel(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	for _, id := range c.ids() {
		eventually(t, id+" has the batch", func() bool { n, _, _ := crashNumber(c.store(id), "a", 0); return n == 1 })
		if err := c.store(id).tables.db.Update(func(tx *bbolt.Tx) error { // as an older release wrote them
			return errors.Join(tx.Bucket([]byte("meta")).Delete([]byte("level")), tx.Bucket([]byte("meta")).Delete([]byte("id")))
		}); err != nil {
			t.Fatal(err)
		}
	}
	s := c.store(c.leader())
	if err := s.RaiseLevel(t.Context(), s.LeaderTerm(), state.Level, []string{"node-0", "node-1"}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("raise without asking node-2: %v, want code %s", err, api.CodeConflict)
	}
	if err := s.RaiseLevel(t.Context(), s.LeaderTerm()+1, state.Level, c.ids()); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("raise in another term: %v, want code %s", err, api.CodeConflict)
	}
	if err := s.RaiseLevel(t.Context(), s.LeaderTerm(), state.Level+1, c.ids()); err == nil {
		t.Error("raise beyond what the leader supports succeeded, want an error")
	}
	if level, _, err := s.Settled(); level != 6 || err != nil {
		t.Errorf("level = %d, %v; want 6", level, err)
	}
	if err := s.RaiseLevel(t.Context(), s.LeaderTerm(), state.Level, c.ids()); err != nil {
		t.Fatal(err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" has the level", func() bool {
			level, is, err := c.store(id).Settled()
			return err == nil && level == state.Level && is != ""
		})
	}
}
