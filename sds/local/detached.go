package local

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// detached describes a volume as one that reads from no other volume: what a clone reads
// from its snapshot, and that perhaps from another, has become the lowest of its own
// layers. So a clone is copied by its files, without knowing what is in them.
type detached struct {
	meta   volumeMeta
	paths  map[string]string // layers that are other volumes' files
	reads  []sds.SnapshotRef // whose layers these and its own are
	unlock func()            // the other volumes
}

// detached returns the volume as it will be in another pool. The caller has locked the
// volume; the volumes that it reads from are locked, even after an error, until unlock is
// called. A volume is locked before those that it was cloned from, as in CreateVolume.
func (s *Store) detached(ctx context.Context, id api.VolumeID, m *volumeMeta) (d detached, err error) {
	d = detached{meta: *m, paths: map[string]string{}, reads: []sds.SnapshotRef{{Volume: id}}, unlock: func() {}}
	d.meta.Layers = slices.Clone(m.Layers)
	for _, snap := range m.Snapshots {
		d.reads = append(d.reads, sds.SnapshotRef{Volume: id, ID: snap.ID})
	}
	if _, _, err := s.source(id, m, m.Disk); err != nil { // its clones contain no cycle
		return d, err
	}
	for m.clone() {
		ref := m.ref()
		free, err := s.locks.Lock(ctx, volumes+"/"+string(ref.Volume), lockShared)
		if err != nil {
			return d, err
		}
		before := d.unlock
		d.unlock = func() { free(); before() }
		of, snap, err := s.snapshotOf(ref)
		if err != nil {
			return d, err
		}
		d.reads = append(d.reads, ref)
		for _, file := range of.chain(snap.File) {
			d.paths[d.meta.addBelow()] = s.file(ref.Volume, file)
		}
		d.meta.Standalone, d.meta.Base = true, of.image()
		m = of
	}
	return d, nil
}

// addBelow adds a layer below all others, and returns its name.
func (m *volumeMeta) addBelow() string {
	name := m.newFile()
	for i := range m.Layers {
		if m.Layers[i].Below == "" {
			m.Layers[i].Below = name
		}
	}
	m.Layers = append(m.Layers, layer{File: name})
	return name
}

// lowest returns the image that the volume reads, itself or through the snapshots that
// it is cloned from; empty: none.
func (s *Store) lowest(m *volumeMeta) (api.ImageID, error) {
	for range 2 * maxLayers {
		if !m.clone() {
			break
		}
		of, err := s.meta(m.From.Volume)
		if err != nil {
			return "", err
		}
		m = of
	}
	return m.image(), nil
}
