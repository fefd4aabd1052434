package local

import (
	"context"
	"errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// OpenForReading implements sds.Driver.
func (s *Store) OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (r sds.Reading, err error) {
	if id != "" {
		err = sds.CheckID(string(id))
	}
	if err = errors.Join(err, s.begin(ctx), sds.CheckID(string(v))); err != nil {
		return r, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v), here)
	if err != nil {
		return r, err
	}
	defer unlock()
	m, err := s.meta(v)
	if err != nil {
		return r, explain(err)
	}
	file := m.Disk
	if id == "" {
		if err := s.unused(v, m); err != nil {
			return r, explain(err)
		}
	} else if _, snap, err := s.snapshotOf(sds.SnapshotRef{Volume: v, ID: id}); err != nil {
		return r, explain(err)
	} else {
		file = snap.File
	}
	refs := []sds.SnapshotRef{{Volume: v, ID: id}}
	if r.Source, _, err = s.source(v, m, file); err == nil {
		r.SizeBytes, err = s.size(v, file)
	}
	if err != nil {
		return sds.Reading{}, explain(err)
	}
	for from := m; from.From != nil && !from.Standalone; {
		refs = append(refs, from.ref())
		if from, err = s.meta(from.From.Volume); err != nil {
			return sds.Reading{}, explain(err)
		}
	}
	s.pins.add(refs, 1)
	r.Close = func() error {
		s.pins.add(refs, -1)
		return nil
	}
	return r, nil
}

// Movable implements sds.Driver.
func (s *Store) Movable(ctx context.Context, id api.VolumeID) error {
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	m, err := s.meta(id)
	if err == nil && len(m.Snapshots) > 0 && s.pool == "" {
		err = sds.NotMovable(id, len(m.Snapshots))
	}
	return explain(err)
}
