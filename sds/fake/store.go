// Package fake is storage in memory: it checks what sds/local checks, keeps
// only what it would say about images and volumes, and fails when told to.
package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Store implements sds.Driver.
type Store struct {
	limits sds.Limits

	mu      sync.Mutex
	images  map[api.ImageID]sds.Image
	volumes map[api.VolumeID]sds.Volume
	free    int64
	used    map[api.VolumeID]bool
	urls    map[string][]byte
	fault   func(op, id string) error
}

var _ sds.Driver = (*Store)(nil)

const total = 1 << 40

// New is an empty store of 1 TiB.
func New(l sds.Limits) *Store {
	return &Store{
		limits: l.WithDefaults(), free: total, images: map[api.ImageID]sds.Image{}, volumes: map[api.VolumeID]sds.Volume{},
		used: map[api.VolumeID]bool{}, urls: map[string][]byte{},
	}
}

// Fault makes f decide, before each verb, whether it fails: op is the verb's
// name. f nil: nothing fails any more.
func (s *Store) Fault(f func(op, id string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// SetFree says how much room there is, in bytes.
func (s *Store) SetFree(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = bytes
}

// SetUsed says whether an instance has the volume open.
func (s *Store) SetUsed(id api.VolumeID, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[id] = used
}

// Serve makes an address answer with content.
func (s *Store) Serve(url string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls[url] = content
}

// enter begins a verb. The lock is held when it returns nil.
func (s *Store) enter(ctx context.Context, op, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if id != "" {
		if err := sds.CheckID(id); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if fault := s.fault; fault != nil {
		s.mu.Unlock()
		if err := fault(op, id); err != nil {
			return err
		}
		s.mu.Lock()
	}
	return nil
}

// Capabilities implements sds.Driver.
func (s *Store) Capabilities() sds.Capabilities { return sds.Capabilities{Name: "fake", Thin: true} }

// ImportImage implements sds.Driver.
func (s *Store) ImportImage(ctx context.Context, in sds.ImageImport) (sds.Image, error) {
	if err := in.Validate(); err != nil {
		return sds.Image{}, err
	}
	if err := s.enter(ctx, "ImportImage", string(in.ID)); err != nil {
		return sds.Image{}, err
	}
	img, ok := s.images[in.ID]
	served, known := s.urls[in.URL]
	s.mu.Unlock()
	if ok {
		return img, nil
	}
	content := served
	if in.Content != nil {
		var err error
		if content, err = io.ReadAll(io.LimitReader(in.Content, s.limits.MaxImageBytes+1)); err != nil {
			return sds.Image{}, err
		}
	} else if !known {
		return sds.Image{}, api.Errorf(api.CodeInvalid, "nothing is at %q", in.URL).At("spec.url")
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
	if s.free < img.SizeBytes {
		return sds.Image{}, diskFull()
	}
	s.free -= img.SizeBytes
	s.images[in.ID] = img
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
		return sds.Image{}, api.Errorf(api.CodeInvalid, "the image's SHA-256 is %s, not %s", got, in.SHA256).At("spec.sha256")
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
		return img, nil
	}
	return sds.Image{}, api.Errorf(api.CodeNotFound, "there is no image %s", id)
}

// Images implements sds.Driver.
func (s *Store) Images(ctx context.Context) ([]sds.Image, error) {
	if err := s.enter(ctx, "Images", ""); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []sds.Image
	for _, id := range slices.Sorted(maps.Keys(s.images)) {
		all = append(all, s.images[id])
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
		if v.Image == id {
			return api.Errorf(api.CodeInUse, "volume %s is made from image %s", v.ID, id)
		}
	}
	s.free += s.images[id].SizeBytes
	delete(s.images, id)
	return nil
}

// CreateVolume implements sds.Driver.
func (s *Store) CreateVolume(ctx context.Context, v sds.VolumeCreate) (sds.Volume, error) {
	if err := s.enter(ctx, "CreateVolume", string(v.ID)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	if old, ok := s.volumes[v.ID]; ok {
		if old.Image != v.Image {
			return sds.Volume{}, api.Errorf(api.CodeExists, "volume %s is there already, made from another image", v.ID)
		}
		return old, nil
	}
	img, ok := s.images[v.Image]
	if v.Image != "" && !ok {
		return sds.Volume{}, api.Errorf(api.CodeNotFound, "there is no image %s", v.Image)
	}
	size, err := s.limits.VolumeBytes(v.SizeBytes, img.VirtualBytes)
	if err != nil {
		return sds.Volume{}, err
	}
	if s.free < 1<<20 {
		return sds.Volume{}, diskFull()
	}
	vol := sds.Volume{ID: v.ID, Image: v.Image, SizeBytes: size, AllocatedBytes: 4096, Path: "/fake/volumes/" + string(v.ID), Format: sds.QCOW2}
	s.volumes[v.ID] = vol
	return vol, nil
}

// Volume implements sds.Driver.
func (s *Store) Volume(ctx context.Context, id api.VolumeID) (sds.Volume, error) {
	if err := s.enter(ctx, "Volume", string(id)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	return s.find(id)
}

func (s *Store) find(id api.VolumeID) (sds.Volume, error) {
	if v, ok := s.volumes[id]; ok {
		return v, nil
	}
	return sds.Volume{}, api.Errorf(api.CodeNotFound, "there is no volume %s", id)
}

// Volumes implements sds.Driver.
func (s *Store) Volumes(ctx context.Context) ([]sds.Volume, error) {
	if err := s.enter(ctx, "Volumes", ""); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []sds.Volume
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		all = append(all, s.volumes[id])
	}
	return all, nil
}

// ResizeVolume implements sds.Driver.
func (s *Store) ResizeVolume(ctx context.Context, id api.VolumeID, bytes int64) (sds.Volume, error) {
	if err := s.enter(ctx, "ResizeVolume", string(id)); err != nil {
		return sds.Volume{}, err
	}
	defer s.mu.Unlock()
	v, err := s.find(id)
	if err != nil {
		return sds.Volume{}, err
	}
	size, err := s.limits.VolumeBytes(bytes, 0)
	switch {
	case err != nil:
		return sds.Volume{}, err
	case size <= v.SizeBytes:
		return v, nil
	case s.used[id]:
		return sds.Volume{}, inUse(id)
	}
	v.SizeBytes = size
	s.volumes[id] = v
	return v, nil
}

// DeleteVolume implements sds.Driver.
func (s *Store) DeleteVolume(ctx context.Context, id api.VolumeID) error {
	if err := s.enter(ctx, "DeleteVolume", string(id)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if _, ok := s.volumes[id]; ok && s.used[id] {
		return inUse(id)
	}
	delete(s.volumes, id)
	return nil
}

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

func inUse(id api.VolumeID) error {
	return api.Errorf(api.CodeInUse, "volume %s is in use by a running instance", id)
}

func diskFull() error { return api.Errorf(api.CodeDiskFull, "the node's volume store is full") }
