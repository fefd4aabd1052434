package store

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Try returns what Apply would return now, including everything that was acknowledged
// before the call, and changes nothing: it writes no log entry and no event, and
// notifies nobody. The decision is based on this node's tables, which a linearizable
// read has brought to the state of the leader's. It cannot report what only a write
// detects, such as a full disk. Errors are *api.Error.
func (s *Store) Try(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	if err := s.awaitCurrent(ctx); err != nil {
		return nil, err
	}
	raw, err := s.encodeBatch(b)
	if err != nil {
		return nil, err
	}
	a, err := query(s, state.View.Try, raw, "try a batch")
	if err != nil {
		return nil, err
	}
	if a.Refused != nil {
		return nil, a.Refused
	}
	return a.Objects, nil
}
