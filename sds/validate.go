package sds

import (
	"encoding/hex"
	"regexp"

	"github.com/basalt-gpu/basalt/api"
)

// Limits are the limits of a store; the zero value of a field is its default.
type Limits struct {
	MaxImageBytes   int64 // of a file; 64 GiB
	MaxVirtualBytes int64 // of a disk; 16 TiB
}

// WithDefaults sets the defaults of zero fields.
func (l Limits) WithDefaults() Limits {
	if l.MaxImageBytes == 0 {
		l.MaxImageBytes = 64 << 30
	}
	if l.MaxVirtualBytes == 0 {
		l.MaxVirtualBytes = 16 << 40
	}
	return l
}

const mib = 1 << 20

var idForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckID returns an error for what is not a valid ID in a store.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return api.Errorf(api.CodeInvalid, "%q is not a valid ID", id).At("id")
	}
	return nil
}

// Validate returns what is wrong with the request: an *api.Error, or nil.
func (in ImageImport) Validate() error {
	if err := CheckID(string(in.ID)); err != nil {
		return err
	}
	switch {
	case in.Format != Raw && in.Format != QCOW2 && in.Format != ISO:
		return api.Errorf(api.CodeInvalid, "unknown format %q, want raw, qcow2 or iso", in.Format).At("spec.format")
	case (in.URL == "") == (in.Content == nil):
		return api.Errorf(api.CodeInvalid, "an image needs either a URL or content").At("spec.url")
	}
	if in.SizeBytes < 0 || in.SizeBytes > 0 && in.Content == nil {
		return api.Errorf(api.CodeInvalid, "a size of %d bytes is not valid: it is positive and given only with content", in.SizeBytes).At("sizeBytes")
	}
	if in.SHA256 != "" {
		if raw, err := hex.DecodeString(in.SHA256); err != nil || len(raw) != 32 {
			return api.Errorf(api.CodeInvalid, "%q is not a SHA-256 checksum in hexadecimal", in.SHA256).At("spec.sha256")
		}
	}
	return nil
}

// Validate returns what is wrong with the request itself: an *api.Error, or nil.
func (v VolumeCreate) Validate() error {
	if err := CheckID(string(v.ID)); err != nil {
		return err
	}
	if v.Image != "" {
		if err := CheckID(string(v.Image)); err != nil {
			return err
		}
	}
	if v.Snapshot != (SnapshotRef{}) {
		if err := v.Snapshot.Validate(); err != nil {
			return err
		}
		if v.Snapshot.Volume == v.ID || v.Image != "" || v.Fill != nil {
			return api.Errorf(api.CodeInvalid, "a volume with a source snapshot cannot have another source").At("spec.snapshot")
		}
	}
	if v.Epoch < 0 {
		return api.Errorf(api.CodeInvalid, "invalid epoch %d", v.Epoch).At("epoch")
	}
	return v.Encryption.Validate()
}

// Clones reports whether the new volume reads from a snapshot.
func (v VolumeCreate) Clones() bool { return v.Snapshot != (SnapshotRef{}) && !v.Standalone }

// VolumeBytes returns the size of the new volume: want rounded up to a whole
// MiB, or that of the image or snapshot it is created from (0: none).
func (l Limits) VolumeBytes(want, imageBytes int64) (int64, error) {
	l = l.WithDefaults()
	switch {
	case want < 0 || want == 0 && imageBytes == 0:
		return 0, api.Errorf(api.CodeInvalid, "invalid volume size of %d bytes", want).At("spec.sizeBytes")
	case want == 0:
		want = imageBytes
	}
	if want > l.MaxVirtualBytes {
		return 0, api.Errorf(api.CodeTooLarge, "volume size of %d bytes is too large, want at most %d", want, l.MaxVirtualBytes).At("spec.sizeBytes")
	}
	want = (want + mib - 1) / mib * mib
	if want < imageBytes {
		return 0, api.Errorf(api.CodeInvalid, "volume size of %d bytes is smaller than its source, want at least %d", want, imageBytes).
			WithHint("omit the size, or request at least %d bytes", (imageBytes+mib-1)/mib*mib).At("spec.sizeBytes")
	}
	return want, nil
}
