package fake

import (
	"bytes"
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// KeepState implements sds.StateKeeper.
func (s *Store) KeepState(ctx context.Context, id api.VolumeID, epoch int64, state []byte) error {
	if err := sds.CheckState(id, epoch, state); err != nil {
		return err
	}
	if err := s.enter(ctx, "KeepState", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return api.Errorf(api.CodeNotFound, "volume %s does not exist in this store", id)
	}
	if v.state == nil || epoch >= v.stateEpoch {
		v.state, v.stateEpoch = bytes.Clone(state), epoch
	}
	return nil
}

// KeptState implements sds.StateKeeper.
func (s *Store) KeptState(ctx context.Context, id api.VolumeID) (state []byte, epoch int64, err error) {
	if err := s.enter(ctx, "KeptState", string(id)); err != nil {
		return nil, 0, err
	}
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return nil, 0, api.Errorf(api.CodeNotFound, "volume %s does not exist in this store", id)
	}
	return bytes.Clone(v.state), v.stateEpoch, nil
}
