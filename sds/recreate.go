package sds

import "github.com/basalt-gpu/basalt/api"

// Anew decides whether RecreateVolume makes the volume have anew.
func (v VolumeCreate) Anew(have Volume) (bool, error) {
	switch err := v.Same(have); {
	case err != nil:
		return false, err
	case have.Epoch > v.Epoch:
		return false, api.Errorf(api.CodeState, "volume %s was made in epoch %d, after epoch %d", v.ID, have.Epoch, v.Epoch).
			WithHint("this node's knowledge is out of date; it will try again")
	}
	return have.Epoch < v.Epoch, nil
}

// Same refuses what asks for another volume than have under the same name.
func (v VolumeCreate) Same(have Volume) error {
	switch {
	case have.Image != v.Image:
		return api.Errorf(api.CodeExists, "volume %s is there already, made from another image", v.ID)
	case have.Snapshot != v.Snapshot && !have.Standalone: // whose snapshot may be long gone
		return api.Errorf(api.CodeExists, "volume %s is there already, made from another snapshot", v.ID)
	case have.Source.Encrypted != (v.Encryption != nil):
		return api.Errorf(api.CodeExists, "volume %s is there already, encrypted: %v", v.ID, have.Source.Encrypted)
	}
	return nil
}

// Again decides whether RollbackVolume with count has something to do.
func (have Volume) Again(count int64) (bool, error) {
	switch {
	case count < 1:
		return false, api.Errorf(api.CodeInvalid, "rollback number %d", count).At("spec.rollback.count")
	case count < have.Rollbacks:
		return false, api.Errorf(api.CodeState, "volume %s was rolled back %d times, more than %d", have.ID, have.Rollbacks, count).
			WithHint("this node's knowledge is out of date; it will try again")
	}
	return count > have.Rollbacks, nil
}
