package sds

import (
	"bytes"

	"github.com/basalt-gpu/basalt/api"
)

const (
	minPassphrase = 16
	maxPassphrase = 256
)

// Validate returns what is wrong with the key: an *api.Error that does not
// contain it, or nil. A nil key is valid.
func (e *Encryption) Validate() error {
	if e == nil {
		return nil
	}
	if n := len(e.Passphrase); n < minPassphrase || n > maxPassphrase {
		return api.Errorf(api.CodeInvalid, "the key of a volume has %d characters, want %d to %d", n, minPassphrase, maxPassphrase).At("encryption")
	}
	// Hypervisors require it as text.
	if bytes.ContainsFunc(e.Passphrase, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return api.Errorf(api.CodeInvalid, "the key of a volume contains characters other than printable ASCII").At("encryption")
	}
	return nil
}

// Validate returns what is wrong with the request: an *api.Error, or nil.
func (s SnapshotCreate) Validate() error {
	return SnapshotRef{s.Volume, s.ID}.Validate()
}

// Validate returns what is wrong with the name: an *api.Error, or nil.
func (r SnapshotRef) Validate() error {
	if err := CheckID(string(r.Volume)); err != nil {
		return err
	}
	return CheckID(string(r.ID))
}

// CheckKey returns an error for a key to an unencrypted volume, and for a
// missing key to an encrypted one.
func (a Access) CheckKey(v api.VolumeID, encrypted bool) error {
	switch err := a.Encryption.Validate(); {
	case err != nil:
		return err
	case encrypted && a.Encryption == nil:
		return api.Errorf(api.CodeInvalid, "volume %s is encrypted, but no key was given", v)
	case !encrypted && a.Encryption != nil:
		return api.Errorf(api.CodeInvalid, "volume %s is not encrypted, but a key was given", v)
	}
	return nil
}

// WrongKey returns the error for a key that does not open the volume.
func WrongKey(v api.VolumeID) error {
	return api.Errorf(api.CodeInvalid, "the key does not open volume %s", v).
		WithHint("the volume was created with another key; nothing was changed")
}

// SnapshotNotFound returns the error for a missing snapshot.
func SnapshotNotFound(v api.VolumeID, id api.SnapshotID) error {
	return api.Errorf(api.CodeNotFound, "volume %s has no snapshot %s", v, id)
}

// HasSnapshots returns the error for an operation that would lose the volume's
// snapshots.
func HasSnapshots(v api.VolumeID, n int) error {
	return api.Errorf(api.CodeInUse, "volume %s has %d snapshots", v, n).Because(api.Cause{Code: api.CauseHasSnapshots, Count: int64(n)}, "").WithHint("delete its snapshots first")
}

// HasClones returns the error for deleting a snapshot that a volume is cloned
// from.
func HasClones(r SnapshotRef, clone api.VolumeID) error {
	return api.Errorf(api.CodeInUse, "volume %s is cloned from snapshot %s", clone, r.ID).WithHint("delete the clone first")
}

// BeingRead returns the error for deleting a snapshot that is open for
// reading.
func BeingRead(r SnapshotRef) error {
	return api.Errorf(api.CodeInUse, "snapshot %s is being read, probably by a backup", r.ID).WithHint("wait until that has finished")
}

// InUse returns the error for an operation that requires the volume to be
// closed.
func InUse(v api.VolumeID) error {
	return api.Errorf(api.CodeInUse, "volume %s is in use by a running instance", v).WithHint("stop the instance first")
}

// NotMovable returns the error for copying the disk of a volume with
// snapshots.
func NotMovable(v api.VolumeID, n int) error {
	return api.Errorf(api.CodeState, "volume %s has %d snapshots, which cannot be moved to another node", v, n).Because(api.Cause{Code: api.CauseHasSnapshots, Count: int64(n)}, "").
		WithHint("delete its snapshots, or back it up and restore it there")
}

// NotReady returns the error for using a snapshot that is not complete.
func NotReady(s Snapshot) error {
	return api.Errorf(api.CodeState, "snapshot %s of volume %s is not ready yet", s.ID, s.Volume).WithHint("try again when it is ready")
}

// TooManySnapshots returns the error for a snapshot beyond the limit.
func TooManySnapshots(v api.VolumeID, most int) error {
	return api.Errorf(api.CodeState, "volume %s has %d snapshots or layers, the maximum", v, most).WithHint("delete some of its snapshots")
}
