package sds

import "github.com/basalt-gpu/basalt/api"

// MustRecreate reports whether RecreateVolume must recreate the volume have.
func (v VolumeCreate) MustRecreate(have Volume) (bool, error) {
	switch err := v.Same(have); {
	case err != nil:
		return false, err
	case have.Epoch > v.Epoch:
		return false, api.Errorf(api.CodeState, "volume %s was created in epoch %d, want at most %d", v.ID, have.Epoch, v.Epoch).
			WithHint("this node's state is out of date; it is tried again automatically")
	}
	return have.Epoch < v.Epoch, nil
}

// Same returns an error if the request is for another volume than have with
// the same ID.
func (v VolumeCreate) Same(have Volume) error {
	switch {
	case have.Image != v.Image:
		return api.Errorf(api.CodeExists, "volume %s already exists with another image", v.ID)
	case have.Snapshot != v.Snapshot && !have.Standalone: // its snapshot may have been deleted since
		return api.Errorf(api.CodeExists, "volume %s already exists with another snapshot", v.ID)
	case have.Source.Encrypted != (v.Encryption != nil):
		return api.Errorf(api.CodeExists, "volume %s already exists, encrypted: %v", v.ID, have.Source.Encrypted)
	}
	return nil
}

// MustRollBack reports whether RollbackVolume with count must roll back.
func (have Volume) MustRollBack(count int64) (bool, error) {
	switch {
	case count < 1:
		return false, api.Errorf(api.CodeInvalid, "invalid rollback count %d", count).At("spec.rollback.count")
	case count < have.Rollbacks:
		return false, api.Errorf(api.CodeState, "volume %s was rolled back %d times, want at most %d", have.ID, have.Rollbacks, count).
			WithHint("this node's state is out of date; it is tried again automatically")
	}
	return count > have.Rollbacks, nil
}
