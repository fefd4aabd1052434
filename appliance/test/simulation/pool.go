package simulation

import (
	"context"
	"io"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

const imageURL = "https://images.example/debian"

// rawImage is a raw disk image with a boot sector signature and nothing else.
var rawImage = func() []byte {
	b := make([]byte, 4096)
	b[510], b[511] = 0x55, 0xaa
	return b
}()

// pool is a storage pool as seen by one process of basaltd. name distinguishes the paths of its
// files from those of other pools.
type pool struct {
	*sdsfake.Store
	m    *machine
	p    *proc
	name string
}

var (
	_ sds.Driver = pool{}
	_ sds.Mover  = pool{}
)

func (s pool) path(v sds.Volume, err error) (sds.Volume, error) {
	if err == nil {
		v.Source.Path = "/" + s.name + v.Source.Path
	}
	return v, err
}

func (s pool) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := s.m.enter(ctx, "ImportImage"); err != nil {
		return sds.Image{}, err
	}
	return s.Store.ImportImage(ctx, in)
}

func (s pool) DeleteImage(ctx context.Context, id api.ImageID) error {
	if err := s.m.enter(ctx, "DeleteImage"); err != nil {
		return err
	}
	return s.Store.DeleteImage(ctx, id)
}

func (s pool) ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, sds.Image, error) {
	if err := s.m.enter(ctx, "ExportImage"); err != nil {
		return nil, sds.Image{}, err
	}
	return s.Store.ExportImage(ctx, id)
}

func (s pool) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := s.m.enter(ctx, "CreateVolume"); err != nil {
		return sds.Volume{}, err
	}
	_, err := s.Store.Volume(ctx, v.ID)
	made, cerr := s.path(s.Store.CreateVolume(ctx, v))
	if err != nil && cerr == nil {
		s.m.w.disks.created(s, made.Source.Path)
	}
	s.m.spring("CreateVolume", true)
	return made, cerr
}

func (s pool) RecreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := s.m.enter(ctx, "RecreateVolume"); err != nil {
		return sds.Volume{}, err
	}
	was, _ := s.Store.Volume(ctx, v.ID)
	made, err := s.path(s.Store.RecreateVolume(ctx, v))
	if err == nil && was.Epoch != made.Epoch {
		s.m.w.disks.created(s, made.Source.Path)
	}
	s.m.spring("RecreateVolume", true)
	return made, err
}

func (s pool) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := s.m.enter(ctx, "Volume"); err != nil {
		return sds.Volume{}, err
	}
	return s.path(s.Store.Volume(ctx, id))
}

func (s pool) Volumes(ctx context.Context) ([]sds.Volume, error) {
	if err := s.m.enter(ctx, "Volumes"); err != nil {
		return nil, err
	}
	return s.Store.Volumes(ctx)
}

func (s pool) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64, a sds.Access) (sds.Volume, error) {
	if err := s.m.enter(ctx, "ResizeVolume"); err != nil {
		return sds.Volume{}, err
	}
	return s.path(s.Store.ResizeVolume(ctx, id, bytes, a))
}

func (s pool) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.m.enter(ctx, "DeleteVolume"); err != nil {
		return err
	}
	_, there := s.Store.Volume(ctx, id)
	err := s.Store.DeleteVolume(ctx, id)
	if err == nil && there == nil {
		s.m.w.disks.deleted(s, id)
	}
	s.m.spring("DeleteVolume", true)
	return err
}

func (s pool) ClaimVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	if err := s.m.enter(ctx, "ClaimVolume"); err != nil {
		return err
	}
	return s.Store.ClaimVolume(ctx, id, o)
}

func (s pool) ReleaseVolume(ctx context.Context, id api.VolumeID, o sds.Owner) error {
	if err := s.m.enter(ctx, "ReleaseVolume"); err != nil {
		return err
	}
	return s.Store.ReleaseVolume(ctx, id, o)
}

func (s pool) Exportable(ctx context.Context, id api.VolumeID, with ...api.VolumeID) error {
	if err := s.m.enter(ctx, "Exportable"); err != nil {
		return err
	}
	return s.Store.Exportable(ctx, id, with...)
}

func (s pool) ExportVolume(ctx context.Context, id api.VolumeID, w io.Writer) error {
	if err := s.m.enter(ctx, "ExportVolume"); err != nil {
		return err
	}
	return s.Store.ExportVolume(ctx, id, w)
}

// ImportVolume takes virtual time, and may be interrupted meanwhile.
func (s pool) ImportVolume(ctx context.Context, in sds.VolumeImport) (sds.Volume, error) {
	if err := s.m.enter(ctx, "ImportVolume"); err != nil {
		return sds.Volume{}, err
	}
	content := in.Content.(*volumeContent)
	s.m.w.stats.Copies++
	s.m.spring("ImportVolume", false)
	if err := content.arrives(); err != nil {
		return sds.Volume{}, err
	}
	v, err := s.path(s.Store.ImportVolume(ctx, in))
	if err == nil {
		s.m.w.disks.content[v.Source.Path] = content.generation
		s.m.w.logf(s.m.name(), "has a copy of %s, generation %d", in.ID, content.generation)
		s.m.w.stats.Copied++
		if !s.m.w.truth.Volumes[string(in.ID)].Spec.Root {
			s.m.w.stats.CopiedData++
		}
	}
	s.m.spring("ImportVolume", true)
	return v, err
}

func (s pool) DiscardVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.m.enter(ctx, "DiscardVolume"); err != nil {
		return err
	}
	_, there := s.Store.Volume(ctx, id)
	err := s.Store.DiscardVolume(ctx, id)
	if err == nil && there == nil {
		s.m.w.disks.deleted(s, id)
	}
	s.m.spring("DiscardVolume", true)
	return err
}
