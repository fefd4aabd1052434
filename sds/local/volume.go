package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// volumeMeta is kept beside a volume's disk. Its size stands in the qcow2
// header only.
type volumeMeta struct {
	Version    int         `json:"version"` // 1; 2 since there are Disk, Epoch and Standalone
	Image      api.ImageID `json:"image,omitempty"`
	Disk       string      `json:"disk,omitempty"` // file that counts; empty: "disk"
	Epoch      int64       `json:"epoch,omitempty"`
	Standalone bool        `json:"standalone,omitempty"`
}

const volumeVersion = 2

func (m *volumeMeta) disk() string {
	if m.Disk == "" {
		return diskName
	}
	return filepath.Base(m.Disk)
}

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := errors.Join(v.Validate(), s.begin(ctx)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v.ID), here)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	return s.createVolume(ctx, v)
}

// createVolume needs no lock of the volume between hosts: only one gets its
// name.
func (s *Store) createVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	switch old, err := s.volume(v.ID); {
	case err == nil && old.Image != v.Image:
		return sds.Volume{}, sds.OtherImage(v.ID)
	case err == nil || api.CodeOf(err) != api.CodeNotFound:
		return old, err
	}
	err := s.withDisk(ctx, v, func(write func(disk string) error) error {
		return s.create(volumes, string(v.ID), func(disk string) (any, error) {
			return &volumeMeta{Version: volumeVersion, Image: v.Image, Epoch: v.Epoch, Standalone: v.Standalone}, write(disk)
		})
	})
	if err != nil && !errors.Is(err, errTaken) {
		return sds.Volume{}, err
	}
	made, err := s.volume(v.ID)
	if err == nil && made.Image != v.Image {
		return sds.Volume{}, sds.OtherImage(v.ID)
	}
	return made, err
}

// withDisk lets put place the volume's disk, which it writes to a file. The
// image's lock is held until the volume names it: it cannot be deleted in
// between.
func (s *Store) withDisk(ctx context.Context, v sds.VolumeCreate, put func(write func(disk string) error) error) error {
	var img sds.Image
	backed := v.Image != "" && !v.Standalone
	if backed {
		unlock, err := s.locks.Lock(ctx, images+"/"+string(v.Image), among)
		if err != nil {
			return err
		}
		defer unlock()
		if img, err = s.image(v.Image); err != nil {
			return err
		}
	}
	size, err := s.opt.Limits.VolumeBytes(v.SizeBytes, img.VirtualBytes)
	if err != nil {
		return err
	}
	if err := s.room(ctx, 1<<20); err != nil {
		return err
	}
	return put(func(disk string) error {
		args := []string{"create", "-q", "-f", "qcow2"}
		if backed {
			// Relative to the disk, which lies as deep now as it will later.
			args = append(args, "-F", string(img.Format), "-b", filepath.Join("..", "..", images, string(v.Image), diskName))
		}
		_, err := qemuImg(ctx, append(args, disk, strconv.FormatInt(size, 10))...)
		return s.full(ctx, err)
	})
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

// RecreateVolume implements sds.Driver. The new disk gets a name of its own;
// the volume is the new one from the moment that its metadata says so.
func (s *Store) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := errors.Join(v.Validate(), s.begin(ctx)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v.ID), alone)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	var m volumeMeta
	found, err := s.readMeta(volumes, string(v.ID), &m)
	switch {
	case err != nil:
		return sds.Volume{}, err
	case !found:
		return s.createVolume(ctx, v)
	}
	if anew, err := v.Anew(m.Image, m.Epoch); err != nil {
		return sds.Volume{}, err
	} else if !anew {
		return s.volume(v.ID)
	}
	dir := s.path(volumes, string(v.ID))
	if err := s.idle(v.ID, filepath.Join(dir, m.disk())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sds.Volume{}, err
	}
	name := fmt.Sprintf("%s-%d", diskName, v.Epoch)
	err = s.withDisk(ctx, v, func(write func(disk string) error) error {
		disk := filepath.Join(dir, name)
		err := os.Remove(disk) // half made, by whoever died of it
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := errors.Join(write(disk), syncPath(disk)); err != nil {
			_ = os.Remove(disk)
			return err
		}
		return s.replaceMeta(volumes, string(v.ID), &volumeMeta{Version: volumeVersion, Image: v.Image, Disk: name, Epoch: v.Epoch, Standalone: v.Standalone})
	})
	if err != nil {
		return sds.Volume{}, explain(err)
	}
	// Every other disk is of the past, or half made.
	disks, err := filepath.Glob(filepath.Join(dir, diskName+"*"))
	for _, old := range disks {
		if filepath.Base(old) != name {
			err = errors.Join(err, os.Remove(old))
		}
	}
	if err != nil {
		return sds.Volume{}, explain(err)
	}
	return s.volume(v.ID)
}

// volume reads what is kept. One that is replaced meanwhile is read again.
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
	var m volumeMeta
	found, err := s.readMeta(volumes, string(id), &m)
	if err != nil {
		return sds.Volume{}, err
	}
	if !found {
		return sds.Volume{}, notFound("volume", string(id))
	}
	if m.Version > volumeVersion {
		return sds.Volume{}, api.Errorf(api.CodeState, "volume %s was written by a later version of Basalt", id).WithHint("update this node")
	}
	v := sds.Volume{
		ID: id, Image: m.Image, Format: sds.QCOW2, Path: filepath.Join(s.path(volumes, string(id)), m.disk()),
		Epoch: m.Epoch, Standalone: m.Standalone,
	}
	f, err := os.Open(v.Path)
	if err != nil {
		return sds.Volume{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return sds.Volume{}, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		v.AllocatedBytes = sys.Blocks * 512 // st_blocks counts these, whatever st_blksize is
	}
	head := make([]byte, sds.HeadBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return sds.Volume{}, err
	}
	if v.SizeBytes, err = sds.VirtualBytes(head[:n]); err != nil {
		return sds.Volume{}, fmt.Errorf("volume %s: %s: %w", id, v.Path, err)
	}
	return v, nil
}

// Volume implements sds.Driver.
func (s *Store) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return sds.Volume{}, err
	}
	v, err := s.volume(id)
	return v, explain(err)
}

// Volumes implements sds.Driver.
func (s *Store) Volumes(ctx context.Context) ([]sds.Volume, error) {
	if err := s.begin(ctx); err != nil {
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
		case api.CodeOf(err) != api.CodeNotFound && !errors.Is(err, fs.ErrNotExist): // deleted meanwhile
			return nil, err
		}
	}
	return all, nil
}

// age of a volume: its metadata is written when it is made.
func (s *Store) age(id string, now time.Time) (time.Duration, error) {
	st, err := os.Stat(filepath.Join(s.path(volumes, id), metaName))
	if err != nil {
		return 0, err
	}
	return max(0, now.Sub(st.ModTime())), nil
}

// ResizeVolume implements sds.Driver.
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (sds.Volume, error) {
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), alone)
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	v, err := s.volume(id)
	if err != nil {
		return sds.Volume{}, err
	}
	size, err := s.opt.Limits.VolumeBytes(bytes, 0)
	if err != nil {
		return sds.Volume{}, err
	}
	if size <= v.SizeBytes {
		return v, nil
	}
	if err := s.idle(id, v.Path); err != nil {
		return sds.Volume{}, err
	}
	if _, err := qemuImg(ctx, "resize", "-q", "-f", "qcow2", v.Path, strconv.FormatInt(size, 10)); err != nil {
		return sds.Volume{}, s.full(ctx, err)
	}
	if err := syncPath(v.Path); err != nil {
		return sds.Volume{}, explain(err)
	}
	return s.volume(id)
}

// DeleteVolume implements sds.Driver.
func (s *Store) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id), alone)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := s.volume(id)
	switch err = explain(err); {
	case err == nil:
		if err := s.idle(id, v.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case api.CodeOf(err) == api.CodeUnavailable || api.CodeOf(err) == api.CodeState:
		return err // it may be in order; one that is too damaged to be read may go
	}
	// Also when it was not found: a folder whose disk or metadata is lost.
	if _, err := os.Lstat(s.path(volumes, string(id))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.remove(volumes, string(id))
}

// idle refuses with in_use while a hypervisor has the disk open, on this host
// or, where the file system's locks reach there, on another.
func (s *Store) idle(id api.VolumeID, disk string) error {
	used, err := busy(disk)
	if err != nil {
		return err
	}
	if used {
		return api.Errorf(api.CodeInUse, "volume %s is in use by a running instance", id).WithHint("stop the instance first")
	}
	return nil
}
