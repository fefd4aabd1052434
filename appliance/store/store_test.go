package store

import (
	"testing"

	"github.com/basalt-gpu/basalt/api/storetest"
)

// open opens a store that the test closes.
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
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store { return open(t, Options{}) })
}

var _ storetest.Store = (*Store)(nil)
