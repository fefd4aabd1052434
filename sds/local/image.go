package local

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// imageMeta is kept beside an image's disk.
type imageMeta struct {
	Version      int        `json:"version"` // 1
	Format       sds.Format `json:"format"`
	SHA256       string     `json:"sha256"`
	SizeBytes    int64      `json:"sizeBytes"`
	VirtualBytes int64      `json:"virtualBytes"`
}

// ImportImage implements sds.Driver.
func (s *Store) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := in.Validate(); err != nil {
		return sds.Image{}, err
	}
	if err := s.begin(ctx); err != nil {
		return sds.Image{}, err
	}
	// Nothing is locked between hosts for as long as an import takes: of two
	// that import the same, the slower throws its copy away.
	unlock, err := s.locks.Lock(ctx, images+"/"+string(in.ID), here)
	if err != nil {
		return sds.Image{}, err
	}
	defer unlock()
	if img, err := s.image(in.ID); err == nil || api.CodeOf(err) != api.CodeNotFound {
		return img, err
	}
	source, size, err := s.open(ctx, in)
	if err != nil {
		return sds.Image{}, err
	}
	defer source.Close()
	if size > s.opt.Limits.MaxImageBytes {
		return sds.Image{}, s.tooLarge()
	}
	if err := s.room(ctx, max(size, 0)); err != nil {
		return sds.Image{}, err
	}
	err = s.create(images, string(in.ID), func(disk string) (any, error) { return s.receive(ctx, in, source, size, disk) })
	if err != nil && !errors.Is(err, errTaken) {
		return sds.Image{}, err
	}
	return s.image(in.ID)
}

// receive writes the source to disk and checks it. size is -1 when the source
// does not say.
func (s *Store) receive(ctx context.Context, in sds.ImageImport, source io.Reader, size int64, disk string) (*imageMeta, error) {
	f, err := os.OpenFile(disk, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buffered := bufio.NewReaderSize(source, sds.HeadBytes)
	head, err := buffered.Peek(sds.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = bytes.Clone(head) // Peek's bytes last until the next read
	hash := sha256.New()
	got, err := s.copy(ctx, f, io.TeeReader(buffered, hash), in.Progress)
	switch {
	case err != nil:
		return nil, err
	case size >= 0 && got != size:
		return nil, api.Errorf(api.CodeUnavailable, "the image's source ended after %d of %d bytes", got, size).WithHint("try again")
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	if in.SHA256 != "" && !strings.EqualFold(in.SHA256, sum) {
		return nil, api.Errorf(api.CodeInvalid, "the image's SHA-256 is %s, not %s", sum, strings.ToLower(in.SHA256)).At("spec.sha256")
	}
	virtual, err := sds.Inspect(head, got, in.Format)
	if err != nil {
		return nil, err
	}
	if virtual > s.opt.Limits.MaxVirtualBytes {
		return nil, api.Errorf(api.CodeTooLarge, "the image's disk of %d bytes is larger than the %d that are allowed", virtual, s.opt.Limits.MaxVirtualBytes)
	}
	if err := verify(ctx, disk, in.Format, virtual); err != nil {
		return nil, err
	}
	return &imageMeta{Version: 1, Format: in.Format, SHA256: sum, SizeBytes: got, VirtualBytes: virtual}, nil
}

const (
	copyBlock     = 256 << 10
	progressEvery = 250 * time.Millisecond
	roomEvery     = 64 << 20 // bytes between two looks at the free space
)

var zeros [copyBlock]byte

// copy writes src to f, leaving holes for zeros, and returns its length.
func (s *Store) copy(ctx context.Context, f *os.File, src io.Reader, progress func(int64)) (int64, error) {
	var at, looked int64
	var told time.Time
	block := make([]byte, copyBlock)
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(src, block)
		if int64(n) > s.opt.Limits.MaxImageBytes-at {
			return 0, s.tooLarge()
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := f.WriteAt(block[:n], at); err != nil {
				return 0, err
			}
		}
		at += int64(n)
		if at-looked >= roomEvery {
			looked = at
			if err := s.room(ctx, 0); err != nil {
				return 0, err
			}
		}
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if progress != nil && (end || time.Since(told) >= progressEvery) {
			told = time.Now()
			progress(at)
		}
		switch {
		case end:
			return at, f.Truncate(at)
		case err != nil:
			return 0, err
		}
	}
}

func (s *Store) tooLarge() error {
	return api.Errorf(api.CodeTooLarge, "the image is larger than the %d bytes that are allowed", s.opt.Limits.MaxImageBytes)
}

// image reads what is kept. The image's lock is held, or the answer may be
// stale.
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
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return sds.Image{}, err
	}
	return s.image(id)
}

// Images implements sds.Driver.
func (s *Store) Images(ctx context.Context) ([]sds.Image, error) {
	if err := s.begin(ctx); err != nil {
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
		case api.CodeOf(err) != api.CodeNotFound: // deleted meanwhile
			return nil, err
		}
	}
	return all, nil
}

// DeleteImage implements sds.Driver.
func (s *Store) DeleteImage(ctx context.Context, id api.ImageID) error {
	if err := errors.Join(s.begin(ctx), sds.CheckID(string(id))); err != nil {
		return err
	}
	unlock, err := s.locks.Lock(ctx, images+"/"+string(id), alone)
	if err != nil {
		return err
	}
	defer unlock()
	if s.pool != "" {
		if _, err := s.clock(volumes); err != nil { // for a list that is fresh
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
		} else if found && m.Image == id && !m.Standalone {
			return api.Errorf(api.CodeInUse, "volume %s is made from image %s", v, id).WithHint("delete the volume first")
		}
	}
	return s.remove(images, string(id))
}
