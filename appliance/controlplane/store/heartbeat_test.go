package store

import (
	"testing"
	"time"
)

// asksBarrier reports whether the store appends an entry to its log to know that it
// still leads, after it stood still.
func asksBarrier(t *testing.T, s *Store) bool {
	t.Helper()
	var before uint64
	eventually(t, "no answer", func() bool { // on a busy machine it may have to be elected again
		s.heartbeat.last.Store(-time.Hour.Nanoseconds())
		before = s.raft.LastIndex()
		_, err := s.ReadIndex(t.Context())
		return err == nil
	})
	return s.raft.LastIndex() > before
}

// A leader that stood still asks by a barrier whether it still leads, unless nobody
// else can: also the one that was alone until now.
func TestStoodStill(t *testing.T) {
	if asksBarrier(t, open(t, Options{})) {
		t.Error("a node that is alone asks itself by a barrier")
	}
	c := newCluster(t, 1, Options{})
	if asksBarrier(t, c.store(c.leader())) {
		t.Error("the only member of a cluster asks itself by a barrier")
	}
	c = newCluster(t, 2, Options{})
	if !asksBarrier(t, c.store(c.leader())) {
		t.Error("a leader of two that stood still asks by no barrier")
	}
}
