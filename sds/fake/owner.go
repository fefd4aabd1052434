package fake

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// ClaimVolume implements sds.Driver.
func (s *Store) ClaimVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	v, err := s.owned(ctx, "ClaimVolume", id, o)
	if v == nil || err != nil {
		return err
	}
	defer s.mu.Unlock()
	write, err := o.Decide(id, v.claim)
	if write {
		v.claim = &sds.Claim{Owner: o}
	}
	return err
}

// ReleaseVolume implements sds.Driver.
func (s *Store) ReleaseVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	v, err := s.owned(ctx, "ReleaseVolume", id, o)
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	if v == nil || err != nil {
		return err
	}
	defer s.mu.Unlock()
	if v.claim != nil && v.claim.Owner == o {
		v.claim = &sds.Claim{Owner: o, Released: true}
	}
	return nil
}

// owned starts a claim operation. The caller holds the lock if a volume is
// returned, which is nil if the pool is not shared.
func (s *Store) owned(ctx context.Context, op string, id api.VolumeID, o sds.Owner) (*volume, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx, op, string(id)); err != nil {
		return nil, err
	}
	if s.id == "" {
		s.mu.Unlock()
		return nil, nil
	}
	v, err := s.find(id)
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	return v, nil
}

// Owner implements sds.Driver.
func (s *Store) Owner(ctx context.Context, id api.VolumeID) (sds.Owner, error) {
	if err := s.enter(ctx, "Owner", string(id)); err != nil {
		return sds.Owner{}, err
	}
	defer s.mu.Unlock()
	if s.id == "" {
		return sds.Owner{}, nil
	}
	v, err := s.find(id)
	if err != nil || v.claim == nil || v.claim.Released {
		return sds.Owner{}, err
	}
	return v.claim.Owner, nil
}
