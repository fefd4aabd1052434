// Package fake is storage in memory: it makes the same checks as sds/local,
// stores what is written to volumes with WriteAt, and fails on request.
package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Store implements sds.Driver: one node's driver of a pool.
type Store struct {
	*pool
	id string // of the pool; empty: not shared

	faultMu sync.Mutex
	fault   func(op, id string) error
}

// pool is the stored data.
type pool struct {
	limits sds.Limits

	mu      sync.Mutex
	images  map[api.ImageID]image
	volumes map[api.VolumeID]*volume
	hidden  map[api.VolumeID]*volume // being filled
	free    int64
	used    map[api.VolumeID]bool
	urls    map[string][]byte
	now     func() time.Time
}

type image struct {
	sds.Image
	content []byte
}

var _ sds.Driver = (*Store)(nil)

const total = 1 << 40

// New returns an empty store of 1 TiB, for one node.
func New(l sds.Limits) *Store { return Shared("", l, 1)[0] }

// Shared returns the stores of several nodes for one empty pool of 1 TiB.
// Faults are per node; everything else is shared.
func Shared(id string, l sds.Limits, nodes int) []*Store {
	p := &pool{
		limits: l.WithDefaults(), free: total, images: map[api.ImageID]image{}, volumes: map[api.VolumeID]*volume{},
		hidden: map[api.VolumeID]*volume{},
		used:   map[api.VolumeID]bool{}, urls: map[string][]byte{}, now: time.Now,
	}
	all := make([]*Store, nodes)
	for i := range all {
		all[i] = &Store{pool: p, id: id}
	}
	return all
}

// Join returns a store of another node for the same pool.
func (s *Store) Join() *Store { return &Store{pool: s.pool, id: s.id} }

// Fault makes f decide, before each method, whether it fails: op is the
// method's name. A nil f ends that.
func (s *Store) Fault(f func(op, id string) error) {
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	s.fault = f
}

// SetFree sets the free space, in bytes.
func (p *pool) SetFree(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = bytes
}

// SetUsed sets whether an instance has the volume open.
func (p *pool) SetUsed(id api.VolumeID, used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[id] = used
}

// SetNow sets the pool's clock.
func (p *pool) SetNow(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Serve makes a URL return content.
func (p *pool) Serve(url string, content []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urls[url] = content
}

// enter starts a method. If it returns nil, the caller holds the lock.
func (s *Store) enter(ctx context.Context, op, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if id != "" {
		if err := sds.CheckID(id); err != nil {
			return err
		}
	}
	s.faultMu.Lock()
	fault := s.fault
	s.faultMu.Unlock()
	if fault != nil {
		if err := fault(op, id); err != nil {
			return err
		}
	}
	s.mu.Lock()
	return nil
}

// Capabilities implements sds.Driver.
func (s *Store) Capabilities() sds.Capabilities {
	return sds.Capabilities{
		Name: "fake", Thin: true, Shared: s.id != "", ResizeOnline: true, Snapshots: true, LiveSnapshots: true, Clones: true, Encryption: true,
	}
}

// PoolID implements sds.Driver.
func (s *Store) PoolID() string { return s.id }

// ImportImage implements sds.Driver.
func (s *Store) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := in.Validate(); err != nil {
		return sds.Image{}, err
	}
	if err := s.enter(ctx, "ImportImage", string(in.ID)); err != nil {
		return sds.Image{}, err
	}
	have, ok := s.images[in.ID]
	served, known := s.urls[in.URL]
	s.mu.Unlock()
	if ok {
		return have.Image, nil
	}
	content := served
	if in.Content != nil {
		var err error
		if content, err = io.ReadAll(io.LimitReader(in.Content, s.limits.MaxImageBytes+1)); err != nil {
			return sds.Image{}, err
		}
		if got := int64(len(content)); in.SizeBytes > 0 && got < in.SizeBytes {
			return sds.Image{}, api.Errorf(api.CodeUnavailable, "the image source ended after %d of %d bytes", got, in.SizeBytes)
		}
	} else if !known {
		return sds.Image{}, api.Errorf(api.CodeInvalid, "no image exists at %q", in.URL).At("spec.url")
	}
	img, err := s.check(in, content)
	if err != nil {
		return sds.Image{}, err
	}
	if in.Progress != nil {
		in.Progress(img.SizeBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, ok := s.images[in.ID]; ok {
		return have.Image, nil // another import was first
	}
	if s.free < img.SizeBytes {
		return sds.Image{}, diskFull()
	}
	s.free -= img.SizeBytes
	s.images[in.ID] = image{img, content}
	return img, nil
}

func (s *Store) check(in sds.ImageImport, content []byte) (sds.Image, error) {
	size := int64(len(content))
	if size > s.limits.MaxImageBytes {
		return sds.Image{}, api.Errorf(api.CodeTooLarge, "the image is larger than %d bytes", s.limits.MaxImageBytes)
	}
	sum := sha256.Sum256(content)
	got := hex.EncodeToString(sum[:])
	if in.SHA256 != "" && !strings.EqualFold(got, in.SHA256) {
		return sds.Image{}, api.Errorf(api.CodeInvalid, "the image has SHA-256 %s, want %s", got, in.SHA256).At("spec.sha256")
	}
	virtual, err := sds.Inspect(content[:min(size, sds.HeadBytes)], size, in.Format)
	if err != nil {
		return sds.Image{}, err
	}
	if virtual > s.limits.MaxVirtualBytes {
		return sds.Image{}, api.Errorf(api.CodeTooLarge, "the image's disk is larger than %d bytes", s.limits.MaxVirtualBytes)
	}
	return sds.Image{
		ID: in.ID, Format: in.Format, SHA256: got, SizeBytes: size, VirtualBytes: virtual, Path: "/fake/images/" + string(in.ID),
	}, nil
}

// Image implements sds.Driver.
func (s *Store) Image(ctx context.Context, id api.ImageID) (sds.Image, error) {
	if err := s.enter(ctx, "Image", string(id)); err != nil {
		return sds.Image{}, err
	}
	defer s.mu.Unlock()
	if img, ok := s.images[id]; ok {
		return img.Image, nil
	}
	return sds.Image{}, api.Errorf(api.CodeNotFound, "image %s does not exist", id)
}

// Images implements sds.Driver.
func (s *Store) Images(ctx context.Context) ([]sds.Image, error) {
	if err := s.enter(ctx, "Images", ""); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []sds.Image
	for _, id := range slices.Sorted(maps.Keys(s.images)) {
		all = append(all, s.images[id].Image)
	}
	return all, nil
}

// DeleteImage implements sds.Driver.
func (s *Store) DeleteImage(ctx context.Context, id api.ImageID) error {
	if err := s.enter(ctx, "DeleteImage", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, v := range s.volumes {
		if v.Reads == id {
			return api.Errorf(api.CodeInUse, "volume %s was created from image %s", v.ID, id)
		}
	}
	s.free += s.images[id].SizeBytes
	delete(s.images, id)
	return nil
}

// ExportImage implements sds.Driver.
func (s *Store) ExportImage(ctx context.Context, id api.ImageID) (io.ReadSeekCloser, sds.Image, error) {
	if err := s.enter(ctx, "ExportImage", string(id)); err != nil {
		return nil, sds.Image{}, err
	}
	defer s.mu.Unlock()
	img, ok := s.images[id]
	if !ok {
		return nil, sds.Image{}, api.Errorf(api.CodeNotFound, "image %s does not exist", id)
	}
	return reader{bytes.NewReader(img.content)}, img.Image, nil
}

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

// Space implements sds.Driver.
func (s *Store) Space(ctx context.Context) (sds.Space, error) {
	if err := s.enter(ctx, "Space", ""); err != nil {
		return sds.Space{}, err
	}
	defer s.mu.Unlock()
	return sds.Space{TotalBytes: total, FreeBytes: s.free}, nil
}

// Close implements sds.Driver.
func (s *Store) Close() error { return nil }

func diskFull() error { return api.Errorf(api.CodeDiskFull, "the node's volume store is full") }
