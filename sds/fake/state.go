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

// KeepSnapshotState implements sds.StateKeeper.
func (s *Store) KeepSnapshotState(ctx context.Context, ref sds.SnapshotRef, state []byte) error {
	if err := sds.CheckSnapshotState(ref, state); err != nil {
		return err
	}
	if err := s.enter(ctx, "KeepSnapshotState", string(ref.ID)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	v, err := s.find(ref.Volume)
	if err != nil {
		return err
	}
	if len(state) == 0 {
		delete(v.snapStates, ref.ID)
		return nil
	}
	if v.snapStates == nil {
		v.snapStates = map[api.SnapshotID][]byte{}
	}
	v.snapStates[ref.ID] = bytes.Clone(state)
	return nil
}

// SnapshotState implements sds.StateKeeper.
func (s *Store) SnapshotState(ctx context.Context, ref sds.SnapshotRef) ([]byte, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, "SnapshotState", string(ref.ID)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	v, err := s.find(ref.Volume)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(v.snapStates[ref.ID]), nil
}
