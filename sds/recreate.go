package sds

import "github.com/basalt-gpu/basalt/api"

// Anew decides whether RecreateVolume makes the volume anew that was made from
// image in epoch.
func (v VolumeCreate) Anew(image api.ImageID, epoch int64) (bool, error) {
	switch {
	case image != v.Image:
		return false, OtherImage(v.ID)
	case epoch > v.Epoch:
		return false, api.Errorf(api.CodeState, "volume %s was made in epoch %d, after epoch %d", v.ID, epoch, v.Epoch).
			WithHint("this node's knowledge is out of date; it will try again")
	}
	return epoch < v.Epoch, nil
}

// OtherImage refuses a volume whose name is taken.
func OtherImage(id api.VolumeID) error {
	return api.Errorf(api.CodeExists, "volume %s is there already, made from another image", id)
}
