package fake

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

var _ sds.Mover = (*Store)(nil)

// transfer is a volume as ExportVolume writes it.
type transfer struct {
	Volume     sds.Volume
	Key        string
	Content    blocks
	Snapshots  []transferred
	Files      int
	State      []byte
	StateEpoch int64
	SnapStates map[api.SnapshotID][]byte
}

type transferred struct {
	Snapshot sds.Snapshot
	Path     string
	Content  blocks
}

// Exportable implements sds.Mover.
func (s *Store) Exportable(ctx context.Context, id api.VolumeID, with ...api.VolumeID) error {
	if err := s.enter(ctx, "Exportable", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	v, err := s.exportable(id)
	if err != nil {
		return err
	}
	for _, snap := range v.snapshots {
		if ref, clone := s.cloneOf(v, snap, with...); clone != "" {
			return sds.IsCloned(ref, clone)
		}
	}
	return nil
}

func (s *Store) exportable(id api.VolumeID) (*volume, error) {
	v, err := s.find(id)
	switch {
	case err != nil:
		return nil, err
	case s.id != "":
		return nil, api.Errorf(api.CodeState, "volume %s is in a shared pool: other nodes have it already", id)
	case s.used[id]:
		return nil, sds.InUse(id)
	}
	for _, snap := range v.snapshots {
		if !snap.Ready {
			return nil, sds.NotReady(snap.Snapshot)
		}
	}
	return v, nil
}

// Clones reports whether the volume reads from a snapshot.
func (v *volume) Clones() bool { return v.Snapshot != (sds.SnapshotRef{}) && !v.Standalone }

// cloneOf returns a volume that reads from the snapshot and is not among the others;
// empty: none.
func (p *pool) cloneOf(v *volume, snap *snapshot, others ...api.VolumeID) (ref sds.SnapshotRef, clone api.VolumeID) {
	ref = sds.SnapshotRef{Volume: v.ID, ID: snap.ID}
	for _, o := range p.volumes {
		if o.Snapshot == ref && !o.Standalone && !slices.Contains(others, o.ID) {
			return ref, o.ID
		}
	}
	return ref, ""
}

// ExportVolume implements sds.Mover.
func (s *Store) ExportVolume(ctx context.Context, id api.VolumeID, w io.Writer) error {
	if err := s.enter(ctx, "ExportVolume", string(id)); err != nil {
		return err
	}
	v, err := s.exportable(id)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	x := transfer{Volume: v.Volume, Key: v.key, Content: maps.Clone(v.content), Files: v.files, State: v.state, StateEpoch: v.stateEpoch, SnapStates: maps.Clone(v.snapStates)}
	x.Volume.Standalone = v.Standalone || v.Clones() // the content of a clone is complete
	read := []*int{&v.reading}
	for _, snap := range v.snapshots {
		x.Snapshots = append(x.Snapshots, transferred{snap.Snapshot, snap.path, snap.content})
		read = append(read, &snap.reading)
	}
	for _, n := range read {
		*n++
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range read {
			*n--
		}
	}()
	return json.NewEncoder(w).Encode(x)
}

// ImportVolume implements sds.Mover.
func (s *Store) ImportVolume(ctx context.Context, in sds.VolumeImport) (sds.Volume, error) {
	if err := s.enter(ctx, "ImportVolume", string(in.ID)); err != nil {
		return sds.Volume{}, err
	}
	s.mu.Unlock()
	var x transfer
	if err := json.NewDecoder(in.Content).Decode(&x); err != nil {
		return sds.Volume{}, errors.Join(sds.BrokenTransfer(in.ID, err.Error()), err)
	}
	if in.Progress != nil {
		in.Progress(x.Volume.AllocatedBytes)
	}
	if err := s.enter(ctx, "ImportVolume", string(in.ID)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	_, have := s.images[x.Volume.Reads]
	switch {
	case s.volumes[in.ID] != nil:
		return sds.Volume{}, api.Errorf(api.CodeExists, "volume %s already exists on this node", in.ID)
	case x.Volume.Reads != "" && !have:
		return sds.Volume{}, api.Errorf(api.CodeNotFound, "image %s does not exist", x.Volume.Reads)
	case s.free < x.Volume.AllocatedBytes:
		return sds.Volume{}, diskFull()
	}
	v := &volume{Volume: x.Volume, made: s.now(), key: x.Key, content: x.Content, files: x.Files, state: x.State, stateEpoch: x.StateEpoch, snapStates: x.SnapStates}
	if v.content == nil {
		v.content = blocks{}
	}
	for _, snap := range x.Snapshots {
		v.snapshots = append(v.snapshots, &snapshot{Snapshot: snap.Snapshot, path: snap.Path, content: snap.Content})
	}
	s.volumes[in.ID] = v
	return v.Volume, nil
}

// DiscardVolume implements sds.Mover.
func (s *Store) DiscardVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.enter(ctx, "DiscardVolume", string(id)); err != nil {
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
	for _, snap := range v.snapshots {
		ref, clone := s.cloneOf(v, snap)
		switch {
		case clone != "":
			return sds.HasClones(ref, clone)
		case snap.reading > 0:
			return sds.BeingRead(ref)
		}
	}
	delete(s.volumes, id)
	return nil
}
