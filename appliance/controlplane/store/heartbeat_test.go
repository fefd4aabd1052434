package store

import (
	"testing"
	"time"
)

// asksBarrier reports whether the store appends an entry to its log to verify that it
// still leads, after it was stalled.
func asksBarrier(t *testing.T, s *Store) bool {
	t.Helper()
	var before uint64
	eventually(t, "the read index is answered", func() bool { // on a busy machine it may have to be elected again
		s.heartbeat.last.Store(-time.Hour.Nanoseconds())
		before = s.raft.LastIndex()
		_, err := s.ReadIndex(t.Context())
		return err == nil
	})
	return s.raft.LastIndex() > before
}

// A leader that was stalled verifies its leadership with a barrier, unless no other
// node can lead; also a leader that was alone before.
func TestStalledLeader(t *testing.T) {
	if asksBarrier(t, open(t, Options{})) {
		t.Error("a stalled node that is alone used a barrier, want none")
	}
	c := newCluster(t, 1, Options{})
	if asksBarrier(t, c.store(c.leader())) {
		t.Error("the stalled only member of a cluster used a barrier, want none")
	}
	c = newCluster(t, 2, Options{})
	if !asksBarrier(t, c.store(c.leader())) {
		t.Error("a stalled leader of two used no barrier, want one")
	}
}
