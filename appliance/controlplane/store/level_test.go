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

// A new cluster begins with its level and its id, which all members come to
// know, and which their promises keep.
func TestClusterHasAnID(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	_, want, err := c.store(c.leader()).Settled()
	if err != nil || want == "" {
		t.Fatal(want, err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" knows the cluster's id", func() bool {
			level, got, err := c.store(id).Settled()
			return err == nil && level == state.Level && got == want
		})
	}
	c.close()
	other := open(t, Options{NodeID: "node-1"})
	_, id, err := other.Settled()
	if err != nil || id == "" || id == want {
		t.Errorf("another cluster has the id %q, %v", id, err)
	}
	other.Close()
	dir := filepath.Join(c.options.Dir, "node-1")
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(other.options.Dir))); err != nil {
		t.Fatal(err)
	}
	refused(t, one(dir, "node-1"), "it belongs to cluster "+id+", but this node is a member of "+want)
}

// A cluster of before there were levels gets one when all are asked.
func TestRaise(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	writeRange(t, c.store(c.leader()), 1, 1)
	for _, id := range c.ids() {
		eventually(t, "all have it", func() bool { n, _, _ := crashNumber(c.store(id), "a", 0); return n == 1 })
		if err := c.store(id).tables.db.Update(func(tx *bbolt.Tx) error { // as an older release made them
			return errors.Join(tx.Bucket([]byte("meta")).Delete([]byte("level")), tx.Bucket([]byte("meta")).Delete([]byte("id")))
		}); err != nil {
			t.Fatal(err)
		}
	}
	s := c.store(c.leader())
	if err := s.Raise(t.Context(), s.LeadTerm(), state.Level, []string{"node-0", "node-1"}); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("a member was not asked: %v", err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm()+1, state.Level, c.ids()); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("in another term: %v", err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm(), state.Level+1, c.ids()); err == nil {
		t.Error("beyond what the leader supports")
	}
	if level, _, err := s.Settled(); level != 6 || err != nil {
		t.Errorf("level %d, %v", level, err)
	}
	if err := s.Raise(t.Context(), s.LeadTerm(), state.Level, c.ids()); err != nil {
		t.Fatal(err)
	}
	for _, id := range c.ids() {
		eventually(t, id+" has the level", func() bool {
			level, is, err := c.store(id).Settled()
			return err == nil && level == state.Level && is != ""
		})
	}
}
