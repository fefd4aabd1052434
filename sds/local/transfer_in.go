package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds"
)

// ImportVolume implements sds.Mover. The volume needs no lock while it is received:
// it has no name until it is complete.
func (s *Store) ImportVolume(ctx context.Context, in sds.VolumeImport) (sds.Volume, error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(in.ID))); err != nil {
		return sds.Volume{}, err
	}
	exists := api.Errorf(api.CodeExists, "volume %s already exists on this node", in.ID).WithHint("what is left of an earlier copy is deleted first")
	if _, err := os.Lstat(s.path(volumes, string(in.ID))); err == nil {
		return sds.Volume{}, exists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return sds.Volume{}, explain(err)
	}
	m, err := readManifest(in.Content)
	if err != nil {
		return sds.Volume{}, broken(in.ID, err)
	}
	if err := m.check(s.opt.Limits); err != nil {
		return sds.Volume{}, broken(in.ID, err)
	}
	if err := s.room(ctx, m.AllocatedBytes); err != nil {
		return sds.Volume{}, err
	}
	unlock := func() {}
	err = s.createDir(volumes, string(in.ID), func(dir string) (any, error) {
		if err := receive(ctx, dir, m, in); err != nil {
			return nil, err
		}
		unlock, err = s.lockImage(ctx, &m.Volume)
		return &m.Volume, err
	})
	unlock()
	if errors.Is(err, errTaken) {
		return sds.Volume{}, exists
	}
	if err != nil {
		return sds.Volume{}, err
	}
	return s.volume(in.ID)
}

// broken returns the error for what a transfer has that it must not have, or lacks.
func broken(id api.VolumeID, err error) error {
	var said *api.Error
	if errors.As(err, &said) {
		return err
	}
	return errors.Join(sds.BrokenTransfer(id, err.Error()), err)
}

// lockImage locks the image that a volume reads from, which must exist, until the volume
// names it.
func (s *Store) lockImage(ctx context.Context, m *volumeMeta) (unlock func(), err error) {
	if m.image() == "" {
		return func() {}, nil
	}
	unlock, err = s.locks.Lock(ctx, images+"/"+string(m.image()), lockShared)
	if err != nil {
		return func() {}, err
	}
	if _, err := s.image(m.image()); err != nil {
		unlock()
		return func() {}, err
	}
	return unlock, nil
}

// receive writes the files of the volume to the directory, synced.
func receive(ctx context.Context, dir string, m manifest, in sds.VolumeImport) (err error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, x := range m.Files {
		mode := os.FileMode(0o644) // QEMU runs as another user
		if isState(x.Name) {
			mode = 0o600
		}
		f, err := os.OpenFile(filepath.Join(dir, x.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		files = append(files, f)
		if err := f.Truncate(x.SizeBytes); err != nil {
			return err
		}
	}
	if err := receiveExtents(ctx, files, m, in); err != nil {
		return err
	}
	for _, x := range m.Files {
		if err := atomicfile.Sync(filepath.Join(dir, x.Name)); err != nil {
			return err
		}
	}
	return nil
}

// receiveExtents writes the extents to their files until the end of the transfer.
func receiveExtents(ctx context.Context, files []*os.File, m manifest, in sds.VolumeImport) error {
	head, buf := make([]byte, extentHeaderBytes), make([]byte, maxExtent)
	var sum uint64
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.ReadFull(in.Content, head); err != nil {
			return broken(in.ID, err)
		}
		h := parseExtentHeader(head)
		if h.File == endOfTransfer {
			if h.Offset != sum || h.Length != 0 {
				return broken(in.ID, fmt.Errorf("received %d bytes, want %d", sum, h.Offset))
			}
			return nil
		}
		if int(h.File) >= len(files) || h.Length > maxExtent || h.Offset+uint64(h.Length) > uint64(m.Files[h.File].SizeBytes) || h.Offset > h.Offset+uint64(h.Length) {
			return broken(in.ID, fmt.Errorf("extent %+v is outside of its file", h))
		}
		data := buf[:h.Length]
		if _, err := io.ReadFull(in.Content, data); err != nil {
			return broken(in.ID, err)
		}
		if _, err := files[h.File].WriteAt(data, int64(h.Offset)); err != nil {
			return err
		}
		sum += uint64(h.Length)
		if in.Progress != nil {
			in.Progress(int64(sum))
		}
	}
}
