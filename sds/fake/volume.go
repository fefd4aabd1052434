package fake

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

type volume struct {
	sds.Volume
	made       time.Time
	claim      *sds.Claim // nil: never claimed
	key        string     // empty: not encrypted
	content    blocks
	snapshots  []*snapshot // the oldest first
	files      int         // number of files so far, for snapshots and rollbacks
	state      []byte      // of KeepState
	stateEpoch int64
	snapStates map[api.SnapshotID][]byte // of KeepSnapshotState
	overlay    string                    // file that its machine was told to write to, and may write to
	reading    int                       // readings of the volume itself
}

func (v *volume) file() string {
	v.files++
	return fmt.Sprintf("/fake/volumes/%s.%d", v.ID, v.files)
}

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	return s.make(ctx, "CreateVolume", v, func(old *volume) (bool, error) { return false, v.Same(old.Volume) })
}

// RecreateVolume implements sds.Driver.
func (s *Store) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	return s.make(ctx, "RecreateVolume", v, func(old *volume) (bool, error) {
		anew, err := v.MustRecreate(old.Volume)
		if anew && err == nil {
			err = s.idle(old)
		}
		if n := len(old.snapshots); anew && err == nil && n > 0 {
			err = sds.HasSnapshots(v.ID, n)
		}
		return anew, err
	})
}

// make creates the volume if it does not exist, or if anew returns true for
// the existing one.
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
	made := &volume{made: s.now(), content: blocks{}, Volume: sds.Volume{
		ID: v.ID, Image: v.Image, Snapshot: v.Snapshot, AllocatedBytes: 4096, Epoch: v.Epoch, Standalone: v.Standalone,
		Source: sds.Source{Path: "/fake/volumes/" + string(v.ID), Format: sds.QCOW2},
	}}
	base, err := s.base(v, made)
	if err == nil {
		made.SizeBytes, err = s.limits.VolumeBytes(v.SizeBytes, base)
	}
	switch {
	case err != nil:
		return sds.Volume{}, err
	case s.free < 1<<20:
		return sds.Volume{}, diskFull()
	}
	if v.Encryption != nil {
		made.key, made.Source.Encrypted = string(v.Encryption.Passphrase), true
	}
	if v.Fill != nil {
		if err := s.fill(ctx, v, made); err != nil {
			return sds.Volume{}, err
		}
		if now := s.volumes[v.ID]; now != old { // another call was first
			return now.Volume, nil
		}
	}
	if old != nil {
		made.claim, made.files, made.Rollbacks = old.claim, old.files, old.Rollbacks
		made.Source.Path = fmt.Sprintf("%s-%d", made.Source.Path, v.Epoch)
	}
	s.volumes[v.ID] = made
	return made.Volume, nil
}

// base returns the size of what v is created from, and sets the content of
// made.
func (p *pool) base(v sds.VolumeCreate, made *volume) (bytes int64, err error) {
	switch {
	case v.Standalone:
		return 0, nil
	case v.Clones():
		of, err := p.find(v.Snapshot.Volume)
		if err != nil {
			return 0, err
		}
		snap, err := of.snapshot(v.Snapshot.ID)
		switch {
		case err != nil:
			return 0, err
		case !snap.Ready:
			return 0, sds.NotReady(snap.Snapshot)
		}
		if err := of.checkKey(sds.Access{Encryption: v.Encryption}); err != nil {
			return 0, err
		}
		made.content, made.Reads = maps.Clone(snap.content), of.Reads
		return snap.SizeBytes, nil
	case v.Image != "":
		img, ok := p.images[v.Image]
		if !ok {
			return 0, api.Errorf(api.CodeNotFound, "image %s does not exist", v.Image)
		}
		if img.Format == sds.ISO {
			return 0, sds.NoVolume(v.Image)
		}
		made.Reads = v.Image
		if img.Format == sds.Raw {
			made.content.write(0, img.content)
		}
		return img.VirtualBytes, nil
	}
	return 0, nil
}

// fill lets the caller write the volume's content, while the volume is not
// visible.
func (s *Store) fill(ctx context.Context, v sds.VolumeCreate, made *volume) error {
	id := api.VolumeID(fmt.Sprintf(".new-%s-%p", v.ID, made))
	final := made.Source
	made.Source.Path = "/fake/volumes/" + string(id)
	s.hidden[id] = made
	s.mu.Unlock()
	err := v.Fill(ctx, made.Source)
	s.mu.Lock()
	delete(s.hidden, id)
	made.Source = final
	return err
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
	return nil, api.Errorf(api.CodeNotFound, "volume %s does not exist", id)
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
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a sds.Access) (sds.Volume, error) {
	if err := s.enter(ctx, "ResizeVolume", string(id)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	v, err := s.find(id)
	if err != nil {
		return sds.Volume{}, err
	}
	size, err := s.limits.VolumeBytes(bytes, 0)
	if err == nil {
		err = v.checkKey(a)
	}
	switch {
	case err != nil:
		return sds.Volume{}, err
	case size <= v.SizeBytes:
		return v.Volume, nil
	case v.reading > 0 || s.used[id] && a.Live == nil:
		return sds.Volume{}, sds.InUse(id)
	case s.used[id]:
		s.mu.Unlock()
		err := a.Live.Resize(ctx, size)
		s.mu.Lock()
		if err != nil {
			return sds.Volume{}, fmt.Errorf("resize volume %s in its instance: %w", id, err)
		}
	}
	v.SizeBytes = max(v.SizeBytes, size)
	return v.Volume, nil
}

// checkKey returns an error if the key is not the volume's.
func (v *volume) checkKey(a sds.Access) error {
	if err := a.CheckKey(v.ID, v.key != ""); err != nil {
		return err
	}
	if v.key != "" && !bytes.Equal([]byte(v.key), a.Encryption.Passphrase) {
		return sds.WrongKey(v.ID)
	}
	return nil
}

// idle returns in_use while the volume is open.
func (p *pool) idle(v *volume) error {
	if p.used[v.ID] || v.reading > 0 {
		return sds.InUse(v.ID)
	}
	return nil
}

// DeleteVolume implements sds.Driver.
func (s *Store) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.enter(ctx, "DeleteVolume", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	v, ok := s.volumes[id]
	if !ok {
		return nil
	}
	if err := s.idle(v); err != nil {
		return err
	}
	if n := len(v.snapshots); n > 0 {
		return sds.HasSnapshots(id, n)
	}
	delete(s.volumes, id)
	return nil
}

// Movable implements sds.Driver.
func (s *Store) Movable(ctx context.Context, id api.VolumeID) error {
	if err := s.enter(ctx, "Movable", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	v, err := s.find(id)
	if err == nil && s.id == "" && len(v.snapshots) > 0 {
		err = sds.NotMovable(id, len(v.snapshots))
	}
	return err
}
