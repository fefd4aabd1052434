package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

type snapshot struct {
	sds.Snapshot
	path    string // of the snapshot's disk
	content blocks // nil: still that of the volume
	reading int
}

// MaxSnapshots is the largest number of snapshots of a volume.
const MaxSnapshots = 16

func (v *volume) snapshot(id api.SnapshotID) (*snapshot, error) {
	for _, snap := range v.snapshots {
		if snap.ID == id {
			return snap, nil
		}
	}
	return nil, sds.SnapshotNotFound(v.ID, id)
}

// CreateSnapshot implements sds.Driver.
func (s *Store) CreateSnapshot(ctx context.Context, c sds.SnapshotCreate, a sds.Access) (sds.Snapshot, error) {
	if err := c.Validate(); err != nil {
		return sds.Snapshot{}, err
	}
	if err := s.enter(ctx, "CreateSnapshot", string(c.ID)); err != nil {
		return sds.Snapshot{}, err
	}
	defer s.mu.Unlock()
	v, err := s.find(c.Volume)
	if err != nil {
		return sds.Snapshot{}, err
	}
	if err := v.checkKey(a); err != nil {
		return sds.Snapshot{}, err
	}
	snap, err := v.snapshot(c.ID)
	switch {
	case err == nil && snap.Ready:
		return snap.Snapshot, nil
	case s.used[v.ID] && a.Live == nil:
		return sds.Snapshot{}, sds.InUse(v.ID)
	case err != nil:
		if n := len(v.snapshots); n > 0 && !v.snapshots[n-1].Ready {
			return sds.Snapshot{}, sds.NotReady(v.snapshots[n-1].Snapshot)
		}
		if len(v.snapshots) >= MaxSnapshots {
			return sds.Snapshot{}, sds.TooManySnapshots(v.ID, MaxSnapshots)
		}
		snap = &snapshot{path: v.Source.Path, Snapshot: sds.Snapshot{ID: c.ID, Volume: v.ID, SizeBytes: v.SizeBytes, CreatedAt: s.now().UTC()}}
		v.snapshots, v.overlay = append(v.snapshots, snap), v.file()
	}
	if s.used[v.ID] {
		path := cmp.Or(v.overlay, v.Source.Path)
		s.mu.Unlock()
		err := a.Live.Overlay(ctx, path)
		s.mu.Lock()
		if err != nil {
			return sds.Snapshot{}, fmt.Errorf("have the instance write to the overlay of volume %s: %w", v.ID, err)
		}
	}
	v.freeze()
	snap.Ready = true
	return snap.Snapshot, nil
}

// freeze stores the volume's content in the snapshot that is being created:
// from now on the overlay is written to.
func (v *volume) freeze() {
	if v.overlay == "" {
		return
	}
	if n := len(v.snapshots); n > 0 && v.snapshots[n-1].content == nil {
		v.snapshots[n-1].content, v.snapshots[n-1].SizeBytes = maps.Clone(v.content), v.SizeBytes
	}
	v.Source.Path, v.overlay = v.overlay, ""
}

// Snapshot implements sds.Driver.
func (s *Store) Snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID) (sds.Snapshot, error) {
	if err := s.enter(ctx, "Snapshot", string(id)); err != nil {
		return sds.Snapshot{}, err
	}
	defer s.mu.Unlock()
	of, err := s.find(v)
	if err != nil {
		return sds.Snapshot{}, err
	}
	snap, err := of.snapshot(id)
	if err != nil {
		return sds.Snapshot{}, err
	}
	return snap.Snapshot, nil
}

// Snapshots implements sds.Driver.
func (s *Store) Snapshots(ctx context.Context, v api.VolumeID) ([]sds.Snapshot, error) {
	if err := s.enter(ctx, "Snapshots", string(v)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	of, err := s.find(v)
	if err != nil {
		return nil, err
	}
	var all []sds.Snapshot
	for _, snap := range of.snapshots {
		all = append(all, snap.Snapshot)
	}
	return all, nil
}

// DeleteSnapshot implements sds.Driver.
func (s *Store) DeleteSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, a sds.Access) error {
	if err := s.enter(ctx, "DeleteSnapshot", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	ref := sds.SnapshotRef{Volume: v, ID: id}
	of, ok := s.volumes[v]
	if !ok {
		return sds.CheckID(string(v))
	}
	snap, err := of.snapshot(id)
	if err != nil {
		delete(of.snapStates, id)
		return nil // it does not exist
	}
	if err := of.checkKey(a); err != nil {
		return err
	}
	for _, other := range s.volumes {
		if other.Snapshot == ref && !other.Standalone {
			return sds.HasClones(ref, other.ID)
		}
	}
	if snap.reading > 0 {
		return sds.BeingRead(ref)
	}
	of.snapshots = slices.DeleteFunc(of.snapshots, func(one *snapshot) bool { return one == snap })
	delete(of.snapStates, id)
	return nil
}

// RollbackVolume implements sds.Driver.
func (s *Store) RollbackVolume(ctx context.Context, v api.VolumeID, id api.SnapshotID, count int64, a sds.Access) (sds.Volume, error) {
	if err := s.enter(ctx, "RollbackVolume", string(v)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	of, err := s.find(v)
	if err != nil {
		return sds.Volume{}, err
	}
	if again, err := of.MustRollBack(count); err != nil || !again {
		return of.Volume, err
	}
	snap, err := of.snapshot(id)
	if err == nil && !snap.Ready {
		err = sds.NotReady(snap.Snapshot)
	}
	if err == nil {
		err = of.checkKey(a)
	}
	if err == nil {
		err = s.idle(of)
	}
	if err != nil {
		return sds.Volume{}, err
	}
	of.content, of.Source.Path, of.Rollbacks = maps.Clone(snap.content), of.file(), count
	return of.Volume, nil
}

// OpenForReading implements sds.Driver.
func (s *Store) OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (sds.Reading, error) {
	if err := s.enter(ctx, "OpenForReading", string(v)); err != nil {
		return sds.Reading{}, err
	}
	defer s.mu.Unlock()
	of, err := s.find(v)
	if err != nil {
		return sds.Reading{}, err
	}
	r, reading := sds.Reading{Source: of.Source, SizeBytes: of.SizeBytes}, &of.reading
	if id == "" {
		if s.used[v] {
			return sds.Reading{}, sds.InUse(v)
		}
	} else {
		snap, err := of.snapshot(id)
		switch {
		case err != nil:
			return sds.Reading{}, err
		case !snap.Ready:
			return sds.Reading{}, sds.NotReady(snap.Snapshot)
		}
		r.Source.Path, r.SizeBytes, reading = snap.path, snap.SizeBytes, &snap.reading
	}
	*reading++
	r.Close = func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		*reading--
		return nil
	}
	return r, nil
}
