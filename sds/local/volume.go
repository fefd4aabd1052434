package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// volumeMeta is kept beside a volume's disk. Its size stands in the qcow2
// header only.
type volumeMeta struct {
	Version int         `json:"version"` // 1
	Image   api.ImageID `json:"image,omitempty"`
}

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := sds.CheckID(string(v.ID)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(v.ID))
	if err != nil {
		return sds.Volume{}, err
	}
	defer unlock()
	switch old, err := s.volume(v.ID); {
	case err == nil && old.Image != v.Image:
		return sds.Volume{}, api.Errorf(api.CodeExists, "volume %s is there already, made from another image", v.ID)
	case err == nil || api.CodeOf(err) != api.CodeNotFound:
		return old, err
	}
	// The image's lock is held until the volume names it: it cannot be deleted
	// in between.
	var img sds.Image
	if v.Image != "" {
		if err := sds.CheckID(string(v.Image)); err != nil {
			return sds.Volume{}, err
		}
		unlock, err := s.locks.Lock(ctx, images+"/"+string(v.Image))
		if err != nil {
			return sds.Volume{}, err
		}
		defer unlock()
		if img, err = s.image(v.Image); err != nil {
			return sds.Volume{}, err
		}
	}
	size, err := s.opt.Limits.VolumeBytes(v.SizeBytes, img.VirtualBytes)
	if err != nil {
		return sds.Volume{}, err
	}
	if err := s.room(ctx, 1<<20); err != nil {
		return sds.Volume{}, err
	}
	err = s.create(volumes, string(v.ID), func(disk string) (any, error) {
		args := []string{"create", "-q", "-f", "qcow2"}
		if v.Image != "" {
			// Relative to the disk, which lies as deep now as it will later.
			args = append(args, "-F", string(img.Format), "-b", filepath.Join("..", "..", images, string(v.Image), diskName))
		}
		_, err := qemuImg(ctx, append(args, disk, strconv.FormatInt(size, 10))...)
		return &volumeMeta{Version: 1, Image: v.Image}, s.full(ctx, err)
	})
	if err != nil {
		return sds.Volume{}, err
	}
	return s.volume(v.ID)
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

// volume reads what is kept.
func (s *Store) volume(id api.VolumeID) (sds.Volume, error) {
	var m volumeMeta
	found, err := s.readMeta(volumes, string(id), &m)
	if err != nil {
		return sds.Volume{}, err
	}
	if !found {
		return sds.Volume{}, notFound("volume", string(id))
	}
	v := sds.Volume{ID: id, Image: m.Image, Format: sds.QCOW2, Path: filepath.Join(s.path(volumes, string(id)), diskName)}
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
	if err := errors.Join(ctx.Err(), sds.CheckID(string(id))); err != nil {
		return sds.Volume{}, err
	}
	return s.volume(id)
}

// Volumes implements sds.Driver.
func (s *Store) Volumes(ctx context.Context) ([]sds.Volume, error) {
	ids, err := s.ids(volumes)
	if err != nil {
		return nil, err
	}
	var all []sds.Volume
	for _, id := range ids {
		v, err := s.Volume(ctx, api.VolumeID(id))
		switch {
		case err == nil:
			all = append(all, v)
		case api.CodeOf(err) != api.CodeNotFound: // deleted meanwhile
			return nil, err
		}
	}
	return all, nil
}

// ResizeVolume implements sds.Driver.
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (sds.Volume, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return sds.Volume{}, err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id))
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
	if err := s.idle(v); err != nil {
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
	if err := sds.CheckID(string(id)); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, volumes+"/"+string(id))
	if err != nil {
		return err
	}
	defer unlock()
	v, err := s.volume(id)
	if api.CodeOf(err) == api.CodeNotFound {
		return nil
	}
	if err == nil { // a volume too damaged to be read may go
		if err := s.idle(v); err != nil {
			return err
		}
	}
	return s.remove(volumes, string(id))
}

// idle refuses with in_use while a hypervisor has the volume open.
func (s *Store) idle(v sds.Volume) error {
	used, err := busy(v.Path)
	if err != nil {
		return err
	}
	if used {
		return api.Errorf(api.CodeInUse, "volume %s is in use by a running instance", v.ID).WithHint("stop the instance first")
	}
	return nil
}
