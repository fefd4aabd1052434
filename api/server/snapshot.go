package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// snapshotSpec replaces the volume's name with its ID and validates.
func (h *handlers) snapshotSpec(ctx context.Context, m api.Meta, old *api.Snapshot, s api.SnapshotSpec) (api.SnapshotSpec, error) {
	if old != nil {
		if v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, m, "spec.volume", string(s.Volume)); err == nil {
			s.Volume = api.VolumeID(v.Meta.ID)
		}
		return s, api.ChangeSnapshot(old.Spec, s)
	}
	if err := api.ValidateSnapshot(s); err != nil {
		return s, err
	}
	v, err := h.readyVolume(ctx, m, string(s.Volume))
	s.Volume = api.VolumeID(v.Meta.ID)
	return s, err
}

// readyVolume returns a volume of the project whose phase is Ready.
func (h *handlers) readyVolume(ctx context.Context, m api.Meta, ref string) (api.Volume, error) {
	v, _, err := sibling[api.Volume](ctx, h, api.KindVolume, m, "spec.volume", ref)
	if err == nil && v.Status.Phase != api.VolumeReady {
		err = api.Errorf(api.CodeState, "volume %s is not ready", v.Meta.Name).At("spec.volume").WithHint("wait until it is: basalt volume get %s", v.Meta.Name)
	}
	return v, err
}
