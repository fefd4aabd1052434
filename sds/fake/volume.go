package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	return s.make(ctx, "CreateVolume", v, func(old *volume) (bool, error) {
		if old.Image != v.Image {
			return false, sds.OtherImage(v.ID)
		}
		return false, nil
	})
}

// RecreateVolume implements sds.Driver.
func (s *Store) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	return s.make(ctx, "RecreateVolume", v, func(old *volume) (bool, error) {
		anew, err := v.Anew(old.Image, old.Epoch)
		if anew && err == nil && s.used[v.ID] {
			err = inUse(v.ID)
		}
		return anew, err
	})
}

// make the volume when it is not there, or when it is and anew says so.
func (s *Store) make(ctx context.Context, op string, v sds.VolumeCreate, anew func(old *volume) (bool, error)) (sds.Volume, error) {
	if err := v.Validate(); err != nil {
		return sds.Volume{}, err
	}
	if err := s.enter(ctx, op, string(v.ID)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	old := s.volumes[v.ID]
	if old != nil {
		if again, err := anew(old); err != nil {
			return sds.Volume{}, err
		} else if !again {
			return old.Volume, nil
		}
	}
	var img image
	if v.Image != "" && !v.Standalone {
		var ok bool
		if img, ok = s.images[v.Image]; !ok {
			return sds.Volume{}, api.Errorf(api.CodeNotFound, "there is no image %s", v.Image)
		}
	}
	size, err := s.limits.VolumeBytes(v.SizeBytes, img.VirtualBytes)
	if err != nil {
		return sds.Volume{}, err
	}
	if s.free < 1<<20 {
		return sds.Volume{}, diskFull()
	}
	made := &volume{made: s.now(), Volume: sds.Volume{
		ID: v.ID, Image: v.Image, SizeBytes: size, AllocatedBytes: 4096, Path: "/fake/volumes/" + string(v.ID), Format: sds.QCOW2,
		Epoch: v.Epoch, Standalone: v.Standalone,
	}}
	if old != nil {
		made.claim = old.claim
		made.Path = fmt.Sprintf("%s-%d", made.Path, v.Epoch)
	}
	s.volumes[v.ID] = made
	return made.Volume, nil
}

// Volume implements sds.Driver.
func (s *Store) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := s.enter(ctx, "Volume", string(id)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	v, err := s.find(id)
	if err != nil {
		return sds.Volume{}, err
	}
	return v.Volume, nil
}

func (p *pool) find(id api.VolumeID) (*volume, error) {
	if v, ok := p.volumes[id]; ok {
		return v, nil
	}
	return nil, api.Errorf(api.CodeNotFound, "there is no volume %s", id)
}

// Volumes implements sds.Driver.
func (s *Store) Volumes(ctx context.Context) ([]sds.Volume, error) {
	if err := s.enter(ctx, "Volumes", ""); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []sds.Volume
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		v := s.volumes[id].Volume
		v.Age = max(0, s.now().Sub(s.volumes[id].made))
		all = append(all, v)
	}
	return all, nil
}

// ResizeVolume implements sds.Driver.
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (sds.Volume, error) {
	if err := s.enter(ctx, "ResizeVolume", string(id)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	v, err := s.find(id)
	if err != nil {
		return sds.Volume{}, err
	}
	size, err := s.limits.VolumeBytes(bytes, 0)
	switch {
	case err != nil:
		return sds.Volume{}, err
	case size <= v.SizeBytes:
		return v.Volume, nil
	case s.used[id]:
		return sds.Volume{}, inUse(id)
	}
	v.SizeBytes = size
	return v.Volume, nil
}

// DeleteVolume implements sds.Driver.
func (s *Store) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.enter(ctx, "DeleteVolume", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, ok := s.volumes[id]; ok && s.used[id] {
		return inUse(id)
	}
	delete(s.volumes, id)
	return nil
}

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

// owned begins a verb about a claim; the lock is held when a volume is
// returned. None is when the pool is not shared.
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

func inUse(id api.VolumeID) error {
	return api.Errorf(api.CodeInUse, "volume %s is in use by a running instance", id)
}
