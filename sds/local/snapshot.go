package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/luks"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

func (s *snapshotMeta) public(v api.VolumeID) sds.Snapshot {
	return sds.Snapshot{ID: s.ID, Volume: v, SizeBytes: s.SizeBytes, CreatedAt: s.CreatedAt, Ready: !s.Making}
}

// change runs do with the volume's lock, after settling what a machine's end
// has left.
func (s *Store) change(ctx context.Context, id api.VolumeID, do func(m *volumeMeta) error) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), lockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if s.pool != "" { // read the latest state from the server, and not from the cache
		if _, err := s.clock(filepath.Join(volumes, string(id))); errors.Is(err, fs.ErrNotExist) {
			return notFound("volume", string(id))
		} else if err != nil {
			return err
		}
	}
	m, err := s.meta(id)
	if err != nil {
		return err
	}
	if err := s.prune(id, m); err != nil {
		return err
	}
	return do(m)
}

// CreateSnapshot implements sds.Driver. The metadata names the new layer
// before the machine is told to write to it: if the outcome is lost, the
// volume has the content of the new layer, empty or not.
func (s *Store) CreateSnapshot(ctx context.Context, c sds.SnapshotCreate, a sds.Access) (made sds.Snapshot, err error) {
	if err := c.Validate(); err != nil {
		return made, err
	}
	err = s.change(ctx, c.Volume, func(m *volumeMeta) error {
		if m.snapshot(c.ID) == nil {
			if err := s.beginSnapshot(ctx, c, m, a); err != nil {
				return err
			}
		} else if err := a.CheckKey(c.Volume, m.Encrypted); err != nil {
			return err
		}
		if err := s.finishSnapshot(ctx, c.Volume, m, a); err != nil {
			return err
		}
		made = m.snapshot(c.ID).public(c.Volume)
		return nil
	})
	return made, explain(err)
}

func (s *Store) beginSnapshot(ctx context.Context, c sds.SnapshotCreate, m *volumeMeta, a sds.Access) error {
	// Another incomplete snapshot is completed first.
	if err := s.finishSnapshot(ctx, c.Volume, m, a); err != nil {
		return err
	}
	top := m.Disk
	if err := s.checkKey(ctx, c.Volume, m, top, a); err != nil {
		return err
	}
	used, err := busy(s.file(c.Volume, top))
	if err != nil {
		return err
	}
	if used && a.Live == nil {
		return sds.InUse(c.Volume)
	}
	size, err := s.size(c.Volume, top)
	if err != nil {
		return err
	}
	file, err := s.addLayer(ctx, c.Volume, m, top, size, a)
	if err != nil {
		return err
	}
	m.Disk = file
	m.Snapshots = append(m.Snapshots, snapshotMeta{
		ID: c.ID, File: top, SizeBytes: size, CreatedAt: time.Now().UTC(), Making: a.Live != nil,
	})
	return s.saveMeta(c.Volume, m)
}

// addLayer creates an empty layer above another; it does not write the
// metadata.
func (s *Store) addLayer(ctx context.Context, id api.VolumeID, m *volumeMeta, below string, bytes int64, a sds.Access) (string, error) {
	_, deep, err := s.source(id, m, below)
	if err == nil && deep >= s.opt.MaxLayers {
		if err = s.mergeLayers(ctx, id, m, a); err == nil {
			_, deep, err = s.source(id, m, below)
		}
	}
	if err != nil {
		return "", err
	}
	if deep >= s.opt.MaxLayers {
		return "", sds.TooManySnapshots(id, s.opt.MaxLayers)
	}
	if err := s.room(ctx, 4<<20); err != nil {
		return "", err
	}
	file := m.newFile()
	path := s.file(id, file)
	err = createQCOW2(ctx, a.Encryption, path, bytes, "-u", "-F", "qcow2", "-b", below)
	if err = s.full(ctx, err); err == nil {
		err = atomicfile.Sync(path)
	}
	if err != nil {
		_ = os.Remove(path)
		return "", err
	}
	m.Layers = append(m.Layers, layer{File: file, Below: below})
	return file, nil
}

// createQCOW2 creates an empty qcow2 file, encrypted if there is a key; how
// are the arguments for its backing file.
func createQCOW2(ctx context.Context, e *sds.Encryption, path string, bytes int64, how ...string) error {
	args := append([]string{"create", "-q", "-f", "qcow2"}, how...)
	if _, err := qemuimg.Own(ctx, nil, append(args, path, strconv.FormatInt(bytes, 10))...); err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if e == nil {
		return nil
	}
	return luks.EncryptQCOW2(path, e.Passphrase) //nolint:wrapcheck // it names the file
}

// finishSnapshot completes the snapshot that is being created, if there is
// one. Afterwards its content is not written to.
func (s *Store) finishSnapshot(ctx context.Context, id api.VolumeID, m *volumeMeta, a sds.Access) error {
	snap := m.making()
	if snap == nil {
		return nil
	}
	below, err := busy(s.file(id, snap.File))
	if err != nil {
		return err
	}
	above, err := busy(s.file(id, m.Disk))
	switch {
	case err != nil:
		return err
	case above || !below: // the machine writes above, or has ended
	case a.Live == nil:
		return sds.InUse(id)
	}
	if a.Live != nil && !above {
		if err := a.Live.Overlay(ctx, s.file(id, m.Disk)); err != nil {
			return fmt.Errorf("have the instance write to layer %s of volume %s: %w", m.Disk, id, err)
		}
	}
	snap.Making = false
	return s.saveMeta(id, m)
}

// Snapshot implements sds.Driver.
func (s *Store) Snapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID) (sds.Snapshot, error) {
	if err := errors.Join(s.checkPool(ctx), sds.SnapshotRef{Volume: v, ID: id}.Validate()); err != nil {
		return sds.Snapshot{}, err
	}
	m, err := s.meta(v)
	if err != nil {
		return sds.Snapshot{}, explain(err)
	}
	if snap := m.snapshot(id); snap != nil {
		return snap.public(v), nil
	}
	return sds.Snapshot{}, sds.SnapshotNotFound(v, id)
}

// Snapshots implements sds.Driver.
func (s *Store) Snapshots(ctx context.Context, v api.VolumeID) ([]sds.Snapshot, error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(v))); err != nil {
		return nil, err
	}
	m, err := s.meta(v)
	if err != nil {
		return nil, explain(err)
	}
	var all []sds.Snapshot
	for i := range m.Snapshots {
		all = append(all, m.Snapshots[i].public(v))
	}
	return all, nil
}

// DeleteSnapshot implements sds.Driver. The snapshot is deleted when the
// metadata does not name it; its layer is removed if no layer is above it, or
// merged when it is not open.
func (s *Store) DeleteSnapshot(ctx context.Context, v api.VolumeID, id api.SnapshotID, a sds.Access) error {
	ref := sds.SnapshotRef{Volume: v, ID: id}
	if err := ref.Validate(); err != nil {
		return err
	}
	err := s.change(ctx, v, func(m *volumeMeta) error {
		if m.snapshot(id) == nil {
			return s.dropSnapshotState(ref) // left by an interrupted call, if there is one
		}
		if err := a.CheckKey(v, m.Encrypted); err != nil {
			return err
		}
		if err := s.dropSnapshot(ctx, ref, m, a); err != nil {
			return err
		}
		return s.mergeLayers(ctx, v, m, a)
	})
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	return explain(err)
}

// dropSnapshot removes a snapshot that is not being read from the metadata.
func (s *Store) dropSnapshot(ctx context.Context, ref sds.SnapshotRef, m *volumeMeta, a sds.Access) error {
	release, unread, err := s.pins.exclude([]sds.SnapshotRef{ref})
	if err != nil {
		return err
	}
	if !unread {
		return sds.BeingRead(ref)
	}
	defer release()
	if err := s.finishSnapshot(ctx, ref.Volume, m, a); err != nil {
		return err
	}
	if clone, err := s.cloneOf(ref); err != nil {
		return err
	} else if clone != "" {
		return sds.HasClones(ref, clone)
	}
	m.Snapshots = slices.DeleteFunc(m.Snapshots, func(one snapshotMeta) bool { return one.ID == ref.ID })
	m.prune()
	if err := s.saveMeta(ref.Volume, m); err != nil {
		return err
	}
	return s.dropSnapshotState(ref)
}

// cloneOf returns a volume that reads from the snapshot and is not among the
// others; empty: none. The caller holds the lock of the snapshot's volume, which
// creating a clone requires too.
func (s *Store) cloneOf(ref sds.SnapshotRef, others ...api.VolumeID) (api.VolumeID, error) {
	if s.pool != "" {
		if _, err := s.clock(volumes); err != nil { // so that the list is up to date
			return "", err
		}
	}
	all, err := s.ids(volumes)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		var m volumeMeta
		found, err := s.readMeta(volumes, v, &m)
		if err != nil {
			return "", err
		}
		if found && m.clone() && m.From.Volume == ref.Volume && m.From.ID == ref.ID && !slices.Contains(others, api.VolumeID(v)) {
			return api.VolumeID(v), nil
		}
	}
	return "", nil
}

// RollbackVolume implements sds.Driver. It adds a new layer above the
// snapshot's.
func (s *Store) RollbackVolume(ctx context.Context, v api.VolumeID, id api.SnapshotID, count int64, a sds.Access) (made sds.Volume, err error) {
	err = s.change(ctx, v, func(m *volumeMeta) error {
		have, err := s.volume(v)
		if err != nil {
			return err
		}
		if again, err := have.MustRollBack(count); err != nil || !again {
			made = have
			return err
		}
		if err := s.unused(v, m); err != nil {
			return err
		}
		if err := s.finishSnapshot(ctx, v, m, sds.Access{}); err != nil {
			return err
		}
		snap := m.snapshot(id)
		if snap == nil {
			return sds.SnapshotNotFound(v, id)
		}
		if err := s.checkKey(ctx, v, m, snap.File, a); err != nil {
			return err
		}
		file, err := s.addLayer(ctx, v, m, snap.File, have.SizeBytes, a)
		if err != nil {
			return err
		}
		m.Disk, m.Rollbacks = file, count
		m.prune()
		if err := s.saveMeta(v, m); err != nil {
			return err
		}
		made, err = s.volume(v)
		return err
	})
	return made, explain(err)
}

// unused returns in_use while the volume itself is open.
func (s *Store) unused(id api.VolumeID, m *volumeMeta) error {
	if read, err := s.pins.held(sds.SnapshotRef{Volume: id}); err != nil {
		return err
	} else if read {
		return sds.InUse(id)
	}
	return s.closed(id, m)
}

// closed returns in_use while QEMU has the volume itself open.
func (s *Store) closed(id api.VolumeID, m *volumeMeta) error {
	files := []string{m.Disk}
	if snap := m.making(); snap != nil {
		files = append(files, snap.File)
	}
	for _, file := range files {
		used, err := busy(s.file(id, file))
		switch {
		case errors.Is(err, fs.ErrNotExist): // lost: it cannot be open
		case err != nil:
			return err
		case used:
			return sds.InUse(id)
		}
	}
	return nil
}
