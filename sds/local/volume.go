package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/qemuimg"
)

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := errors.Join(v.Validate(), s.checkPool(ctx)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v.ID), lockLocal)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	return s.createVolume(ctx, v)
}

// createVolume needs no lock of the volume between nodes: only one gets its
// name.
func (s *Store) createVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	switch old, err := s.volume(v.ID); {
	case err == nil:
		return old, v.Same(old)
	case api.CodeOf(err) != api.CodeNotFound:
		return old, err
	}
	meta := &volumeMeta{Version: volumeVersion, Disk: diskName, Layers: []layer{{File: diskName}}}
	err := s.withDisk(ctx, v, meta, func(write func(disk string) error) error {
		return s.create(volumes, string(v.ID), func(disk string) (any, error) { return meta, write(disk) })
	})
	if err != nil && !errors.Is(err, errTaken) {
		return sds.Volume{}, err
	}
	made, err := s.volume(v.ID)
	if err == nil {
		err = v.Same(made)
	}
	return made, err
}

// withDisk calls put to place the volume's disk, with a function that writes
// it to a file, and sets the metadata about its creation. What the volume is
// created from is locked until the volume names it, so it cannot be deleted in
// between.
func (s *Store) withDisk(ctx context.Context, v sds.VolumeCreate, m *volumeMeta, put func(write func(disk string) error) error) error {
	m.Image, m.Epoch, m.Standalone, m.Encrypted = v.Image, v.Epoch, v.Standalone, v.Encryption != nil
	if v.Snapshot != (sds.SnapshotRef{}) {
		m.From = &snapshotRef{v.Snapshot.Volume, v.Snapshot.ID}
	}
	for _, key := range reads(v) {
		unlock, err := s.locks.Lock(ctx, key, lockShared)
		if err != nil {
			return err
		}
		defer unlock()
	}
	from, bytes, err := s.base(ctx, v, m)
	if err != nil {
		return err
	}
	size, err := s.opt.Limits.VolumeBytes(v.SizeBytes, bytes)
	if err != nil {
		return err
	}
	if err := s.room(ctx, 1<<20); err != nil {
		return err
	}
	return put(func(disk string) error {
		var args []string
		if from != nil {
			// Relative to the disk, whose directory has the same depth now as later.
			name, err := filepath.Rel(filepath.Join(s.opt.Dir, volumes), from.Path)
			if err != nil {
				return err
			}
			args = []string{"-u", "-F", string(from.Format), "-b", filepath.Join("..", name)}
		}
		if err := createQCOW2(ctx, v.Encryption, disk, size, args...); err != nil {
			return s.full(ctx, err)
		}
		if v.Fill == nil {
			return nil
		}
		return v.Fill(ctx, sds.Source{Path: disk, Format: sds.QCOW2, Encrypted: m.Encrypted, Backing: from})
	})
}

// reads returns the keys of the locks of what a new volume reads.
func reads(v sds.VolumeCreate) []string {
	switch {
	case v.Clones():
		return []string{volumes + "/" + string(v.Snapshot.Volume)}
	case v.Image != "" && !v.Standalone:
		return []string{images + "/" + string(v.Image)}
	}
	return nil
}

// base returns what a new volume reads, nil being nothing, and its size. The
// caller has locked what it is created from.
func (s *Store) base(ctx context.Context, v sds.VolumeCreate, m *volumeMeta) (from *sds.Source, bytes int64, err error) {
	from, deep, err := s.origin(m, maxLayers)
	switch {
	case err != nil || from == nil:
		return nil, 0, err
	case !v.Clones():
		img, err := s.image(v.Image)
		if err == nil && img.Format == sds.ISO {
			err = sds.NoVolume(v.Image)
		}
		return from, img.VirtualBytes, err
	case deep >= s.opt.MaxLayers:
		return nil, 0, sds.TooManySnapshots(v.Snapshot.Volume, s.opt.MaxLayers)
	}
	of, snap, err := s.snapshotOf(v.Snapshot)
	if err == nil {
		err = s.checkKey(ctx, v.Snapshot.Volume, of, snap.File, sds.Access{Encryption: v.Encryption})
	}
	if err != nil {
		return nil, 0, err
	}
	return from, snap.SizeBytes, nil
}

// full explains a failure of qemu-img, which has no exit status for a full
// disk.
func (s *Store) full(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if room := s.room(ctx, 1<<20); api.CodeOf(room) == api.CodeDiskFull {
		return errors.Join(room, err)
	}
	return err
}

// RecreateVolume implements sds.Driver. The new disk gets its own name; the
// volume is the new one from the moment that its metadata names it.
func (s *Store) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := errors.Join(v.Validate(), s.checkPool(ctx)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v.ID), lockExclusive)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	old, err := s.meta(v.ID)
	if api.CodeOf(err) == api.CodeNotFound {
		return s.createVolume(ctx, v)
	}
	if err != nil {
		return sds.Volume{}, explain(err)
	}
	if anew, err := v.MustRecreate(old.public(v.ID)); err != nil {
		return sds.Volume{}, err
	} else if !anew {
		return s.volume(v.ID)
	}
	if err := s.unused(v.ID, old); err != nil {
		return sds.Volume{}, err
	}
	if n := len(old.Snapshots); n > 0 {
		return sds.Volume{}, sds.HasSnapshots(v.ID, n)
	}
	name := fmt.Sprintf("%s-%d", diskName, v.Epoch)
	m := &volumeMeta{Disk: name, Layers: []layer{{File: name}}, Rollbacks: old.Rollbacks, Files: old.Files}
	err = s.withDisk(ctx, v, m, func(write func(disk string) error) error {
		disk := s.file(v.ID, name)
		err := os.Remove(disk) // left incomplete by a process that died
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := errors.Join(write(disk), atomicfile.Sync(disk)); err != nil {
			_ = os.Remove(disk)
			return err
		}
		return s.saveMeta(v.ID, m)
	})
	if err != nil {
		return sds.Volume{}, explain(err)
	}
	return s.volume(v.ID)
}

// public returns the part of the volume that is in the metadata.
func (m *volumeMeta) public(id api.VolumeID) sds.Volume {
	return sds.Volume{
		ID: id, Image: m.Image, Snapshot: m.ref(), Epoch: m.Epoch, Rollbacks: m.Rollbacks, Standalone: m.Standalone,
		Source: sds.Source{Format: sds.QCOW2, Encrypted: m.Encrypted},
	}
}

// volume reads the volume. If it is replaced meanwhile it is read again.
func (s *Store) volume(id api.VolumeID) (sds.Volume, error) {
	for range 3 {
		v, err := s.readVolume(id)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESTALE) {
			return v, err
		}
	}
	return sds.Volume{}, notFound("volume", string(id))
}

func (s *Store) readVolume(id api.VolumeID) (sds.Volume, error) {
	m, err := s.meta(id)
	if err != nil {
		return sds.Volume{}, err
	}
	v := m.public(id)
	if v.Source, _, err = s.source(id, m, m.Disk); err != nil {
		return sds.Volume{}, err
	}
	if v.Reads, err = s.lowest(m); err != nil {
		return sds.Volume{}, err
	}
	for _, l := range m.Layers {
		st, err := os.Stat(s.file(id, l.File))
		if err != nil {
			return sds.Volume{}, err
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			v.AllocatedBytes += sys.Blocks * 512 // the unit of st_blocks, regardless of st_blksize
		}
	}
	if v.SizeBytes, err = s.size(id, m.Disk); err != nil {
		return sds.Volume{}, fmt.Errorf("volume %s: %s: %w", id, v.Source.Path, err)
	}
	return v, nil
}

// Volume implements sds.Driver.
func (s *Store) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return sds.Volume{}, err
	}
	v, err := s.volume(id)
	return v, explain(err)
}

// Volumes implements sds.Driver.
func (s *Store) Volumes(ctx context.Context) ([]sds.Volume, error) {
	if err := s.checkPool(ctx); err != nil {
		return nil, err
	}
	now, err := s.clock(volumes)
	if err != nil {
		return nil, err
	}
	ids, err := s.ids(volumes)
	if err != nil {
		return nil, err
	}
	var all []sds.Volume
	for _, id := range ids {
		v, err := s.Volume(ctx, api.VolumeID(id))
		if err == nil {
			v.Age, err = s.age(id, now)
		}
		switch {
		case err == nil:
			all = append(all, v)
		case api.CodeOf(err) != api.CodeNotFound && !errors.Is(err, fs.ErrNotExist): // not_found: deleted meanwhile
			return nil, err
		}
	}
	return all, nil
}

// age returns the age of a volume, whose metadata is written when it is
// created.
func (s *Store) age(id string, now time.Time) (time.Duration, error) {
	st, err := os.Stat(filepath.Join(s.path(volumes, id), metaName))
	if err != nil {
		return 0, err
	}
	return max(0, now.Sub(st.ModTime())), nil
}

// ResizeVolume implements sds.Driver.
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a sds.Access) (made sds.Volume, err error) {
	err = s.change(ctx, id, func(m *volumeMeta) error {
		have, err := s.volume(id)
		if err != nil {
			return err
		}
		size, err := s.opt.Limits.VolumeBytes(bytes, 0)
		if err == nil {
			err = a.CheckKey(id, m.Encrypted)
		}
		if err != nil || size <= have.SizeBytes {
			made = have
			return err
		}
		if err := s.finishSnapshot(ctx, id, m, a); err != nil {
			return err
		}
		if err := s.grow(ctx, id, m, have, size, a); err != nil {
			return err
		}
		made, err = s.volume(id)
		return err
	})
	return made, explain(err)
}

func (s *Store) grow(ctx context.Context, id api.VolumeID, m *volumeMeta, have sds.Volume, size int64, a sds.Access) error {
	err := s.unused(id, m)
	if api.CodeOf(err) == api.CodeInUse && a.Live != nil {
		if err := a.Live.Resize(ctx, size); err != nil {
			return fmt.Errorf("resize volume %s in its instance: %w", id, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	name, err := imageName(have.Source, false)
	if err != nil {
		return err
	}
	if _, err := qemuimg.Own(ctx, secrets(a.Encryption), "resize", "-q", name, strconv.FormatInt(size, 10)); err != nil {
		return s.full(ctx, wrongKey(id, err))
	}
	return atomicfile.Sync(have.Source.Path)
}

// DeleteVolume implements sds.Driver.
func (s *Store) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), lockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	m, err := s.meta(id)
	switch err = explain(err); {
	case err == nil:
		if err := s.unused(id, m); err != nil {
			return err
		}
		if n := len(m.Snapshots); n > 0 {
			return sds.HasSnapshots(id, n)
		}
	case api.CodeOf(err) == api.CodeUnavailable || api.CodeOf(err) == api.CodeState:
		return err // it may be intact; one that is too damaged to be read may be deleted
	}
	// Also if it was not found: a directory whose disk or metadata is lost.
	if _, err := os.Lstat(s.path(volumes, string(id))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.remove(volumes, string(id))
}
