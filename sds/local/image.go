package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/imagefile"
)

// imageMeta is the metadata of an image, stored beside its disk.
type imageMeta struct {
	Version      int        `json:"version"` // 1
	Format       sds.Format `json:"format"`
	SHA256       string     `json:"sha256"`
	SizeBytes    int64      `json:"sizeBytes"`
	VirtualBytes int64      `json:"virtualBytes"`
}

func (s *Store) receiver() imagefile.Receiver {
	return imagefile.Receiver{Limits: s.opt.Limits, Room: s.room, AllowFileURL: s.opt.AllowFileURL, URLs: s.opt.URLs}
}

// ImportImage implements sds.Driver.
func (s *Store) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := in.Validate(); err != nil {
		return sds.Image{}, err
	}
	if err := s.checkPool(ctx); err != nil {
		return sds.Image{}, err
	}
	// There is no lock between nodes for the duration of an import: of two nodes
	// that import the same image, the slower discards its copy.
	unlock, err := s.locks.Lock(ctx, images+"/"+string(in.ID), lockLocal)
	if err != nil {
		return sds.Image{}, err
	}
	defer unlock()
	if img, err := s.image(in.ID); err == nil || api.CodeOf(err) != api.CodeNotFound {
		return img, err
	}
	source, size, err := s.receiver().Open(ctx, in)
	if err != nil {
		return sds.Image{}, fmt.Errorf("open the source of image %s: %w", in.ID, err)
	}
	defer source.Close()
	err = s.create(images, string(in.ID), func(disk string) (any, error) {
		got, err := s.receiver().Receive(ctx, in, source, size, disk)
		return &imageMeta{Version: 1, Format: in.Format, SHA256: got.SHA256, SizeBytes: got.SizeBytes, VirtualBytes: got.VirtualBytes}, err //nolint:wrapcheck // create and its caller name the image
	})
	if err != nil && !errors.Is(err, errTaken) {
		return sds.Image{}, err
	}
	return s.image(in.ID)
}

// image reads the metadata of an image. Unless the image's lock is held, the
// result may be stale.
func (s *Store) image(id api.ImageID) (sds.Image, error) {
	var m imageMeta
	found, err := s.readMeta(images, string(id), &m)
	if err != nil {
		return sds.Image{}, err
	}
	if !found {
		return sds.Image{}, notFound("image", string(id))
	}
	return sds.Image{
		ID: id, Format: m.Format, SHA256: m.SHA256, SizeBytes: m.SizeBytes, VirtualBytes: m.VirtualBytes,
		Path: filepath.Join(s.path(images, string(id)), diskName),
	}, nil
}

// Image implements sds.Driver.
func (s *Store) Image(ctx context.Context, id api.ImageID) (sds.Image, error) {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return sds.Image{}, err
	}
	return s.image(id)
}

// Images implements sds.Driver.
func (s *Store) Images(ctx context.Context) ([]sds.Image, error) {
	if err := s.checkPool(ctx); err != nil {
		return nil, err
	}
	ids, err := s.ids(images)
	if err != nil {
		return nil, err
	}
	var all []sds.Image
	for _, id := range ids {
		img, err := s.Image(ctx, api.ImageID(id))
		switch {
		case err == nil:
			all = append(all, img)
		case api.CodeOf(err) != api.CodeNotFound: // not_found: deleted meanwhile
			return nil, err
		}
	}
	return all, nil
}

// DeleteImage implements sds.Driver.
func (s *Store) DeleteImage(ctx context.Context, id api.ImageID) error {
	if err := errors.Join(s.checkPool(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, images+"/"+string(id), lockExclusive)
	if err != nil {
		return err
	}
	defer unlock()
	if s.pool != "" {
		if _, err := s.clock(volumes); err != nil { // so that the list is up to date
			return err
		}
	}
	all, err := s.ids(volumes)
	if err != nil {
		return err
	}
	for _, v := range all {
		var m volumeMeta
		if found, err := s.readMeta(volumes, v, &m); err != nil {
			return err
		} else if found && m.image() == id {
			return api.Errorf(api.CodeInUse, "volume %s was created from image %s", v, id).WithHint("delete the volume first")
		}
	}
	return s.remove(images, string(id))
}
