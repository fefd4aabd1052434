package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// ExportImage implements sds.Driver. An image that is deleted meanwhile stays
// readable to its end on this node; over NFS the reader gets an error.
func (s *Store) ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, sds.Image, error) {
	img, err := s.Image(ctx, id)
	if err != nil {
		return nil, sds.Image{}, err
	}
	f, err := os.Open(img.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, sds.Image{}, notFound("image", string(id))
	case err != nil:
		return nil, sds.Image{}, explain(err)
	}
	return f, img, nil
}
