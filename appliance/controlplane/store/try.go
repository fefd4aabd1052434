package store

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Try answers what Apply would answer now, with all that was acknowledged before the
// call, and changes nothing: no entry of the log, no event, and nobody is told. It is
// decided by this node's tables, which a linearizable read has made those of the
// leader. What only a write can find out, as a full disk, it does not say. Errors are
// *api.Error.
func (s *Store) Try(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	if err := s.current(ctx); err != nil {
		return nil, err
	}
	raw, err := s.encodeBatch(b)
	if err != nil {
		return nil, err
	}
	var a state.Answer
	if err := s.view(func(v state.View) (err error) {
		a, err = v.Try(raw)
		return err
	}); err != nil {
		return nil, err
	}
	if a.Refused != nil {
		return nil, a.Refused
	}
	return a.Objects, nil
}
