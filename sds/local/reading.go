package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// OpenForReading implements sds.Driver.
func (s *Store) OpenForReading(ctx context.Context, v api.VolumeID, id api.SnapshotID) (r sds.Reading, err error) {
	if id != "" {
		err = sds.CheckID(string(id))
	}
	if err = errors.Join(err, s.checkPool(ctx), sds.CheckID(string(v))); err != nil {
		return r, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v), lockLocal)
	if err != nil {
		return r, err
	}
	defer unlock()
	release, err := s.pinChain(ctx, sds.SnapshotRef{Volume: v, ID: id})
	if err != nil {
		return r, explain(err)
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if r.Source, r.SizeBytes, err = s.readable(v, id); err != nil {
		return sds.Reading{}, explain(err)
	}
	r.Close = func() error {
		release()
		return nil
	}
	return r, nil
}

// readable returns the source of the snapshot, or, without id, of the volume
// itself, which must not be open. The caller has pinned it.
func (s *Store) readable(v api.VolumeID, id api.SnapshotID) (src sds.Source, bytes int64, err error) {
	m, err := s.meta(v)
	if err != nil {
		return src, 0, err
	}
	file := m.Disk
	if id == "" {
		err = s.closed(v, m)
	} else if _, snap, ferr := s.snapshotOf(sds.SnapshotRef{Volume: v, ID: id}); ferr == nil {
		file = snap.File
	} else {
		err = ferr
	}
	if err == nil {
		src, _, err = s.source(v, m, file)
	}
	if err == nil {
		bytes, err = s.size(v, file)
	}
	return src, bytes, err
}

// pinChain pins a snapshot, or a volume, and the snapshots that it reads
// through all volumes. The set may change until it is pinned, on this node or
// another.
func (s *Store) pinChain(ctx context.Context, ref sds.SnapshotRef) (release func(), err error) {
	refs, err := s.madeFrom(ref)
	for range 3 {
		if err != nil {
			return nil, err
		}
		if release, err = s.pins.hold(ctx, refs); err != nil {
			return nil, err
		}
		now, err := s.madeFrom(ref)
		if err == nil && slices.Equal(now, refs) {
			return release, nil
		}
		release()
		if err != nil {
			return nil, err
		}
		refs = now
	}
	return nil, api.Errorf(api.CodeUnavailable, "volume %s keeps being recreated", ref.Volume).WithHint("try again")
}

// madeFrom returns the reference itself and the snapshots that it reads from.
func (s *Store) madeFrom(ref sds.SnapshotRef) (refs []sds.SnapshotRef, err error) {
	for range 2 * maxLayers {
		refs = append(refs, ref)
		if s.pool != "" { // read the latest state from the server, and not from the cache
			if _, err := s.clock(filepath.Join(volumes, string(ref.Volume))); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		m, err := s.meta(ref.Volume)
		if err != nil {
			return nil, err
		}
		if m.From == nil || m.Standalone {
			return refs, nil
		}
		ref = m.ref()
	}
	return nil, api.Errorf(api.CodeInternal, "the chain of clones of volume %s contains a cycle", refs[0].Volume)
}

// Movable implements sds.Driver.
func (s *Store) Movable(ctx context.Context, id api.VolumeID) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	m, err := s.meta(id)
	if err == nil && len(m.Snapshots) > 0 && s.pool == "" {
		err = sds.NotMovable(id, len(m.Snapshots))
	}
	return explain(err)
}
