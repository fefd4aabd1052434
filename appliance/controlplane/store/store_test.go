package store

import (
	"context"
	"testing"

	"github.com/basalt-gpu/basalt/api/storetest"
)

// open opens a store and closes it at the end of the test.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.NodeID == "" {
		o.NodeID = "node-a"
	}
	if o.Reserve == 0 {
		o.Reserve = 1
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t, Options{}) })
}

// A follower passes the same suite as the leader.
func TestConformanceOnFollower(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	storetest.Run(t, func(t *testing.T) storetest.Store {
		c := newCluster(t, 3, Options{})
		return settled{c.store(c.follower())}
	})
}

// settled is a store whose Revision is that of its linearizable reads: a follower's own
// may lag behind what it forwarded.
type settled struct{ *Store }

func (s settled) Revision() int64 {
	if err := s.awaitCurrent(context.Background()); err != nil {
		panic(err)
	}
	return s.Store.Revision()
}

var _ storetest.Store = (*Store)(nil)
