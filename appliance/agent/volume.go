package agent

import (
	"context"
	"reflect"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// reconcileVolume makes the volume, grows it, or takes it away.
func (a *Agent) reconcileVolume(ctx context.Context, id string) (time.Duration, error) {
	v, ok := get(a.cache, a.cache.volumes, id)
	if !ok {
		return 0, nil
	}
	if v.Meta.DeletedAt != nil {
		return a.endVolume(ctx, v)
	}
	st := v.Status
	st.ObservedGeneration = v.Meta.Generation
	if st.Phase == "" || st.Phase == api.VolumePending || st.Phase == api.VolumeFailed {
		st.Phase = api.VolumeCreating
	}
	have, err := a.o.Volumes.CreateVolume(ctx, sds.VolumeCreate{ID: api.VolumeID(id), Image: v.Spec.Image, SizeBytes: v.Spec.SizeBytes})
	if err == nil && have.SizeBytes < v.Spec.SizeBytes && !a.inUse(ctx, v) {
		have, err = a.o.Volumes.ResizeVolume(ctx, api.VolumeID(id), v.Spec.SizeBytes)
	}
	if err != nil {
		st.Phase, st.LastError = api.VolumeFailed, err.Error()
		if said := a.sayVolume(ctx, v, st); said != nil {
			a.log.Warn("report", "id", id, "error", said)
		}
		return 0, err
	}
	st.Phase, st.LastError, st.SizeBytes, st.AllocatedBytes = api.VolumeReady, "", have.SizeBytes, have.AllocatedBytes
	if err := a.sayVolume(ctx, v, st); err != nil {
		return 0, err
	}
	if v.Status.Phase != api.VolumeReady {
		v.Status = st
		return time.Minute, a.meterVolume(ctx, v)
	}
	return time.Minute, nil
}

func (a *Agent) sayVolume(ctx context.Context, v api.Volume, st api.VolumeStatus) error {
	// What is allocated changes all the time; a percent is worth a write.
	was := v.Status
	if diff := st.AllocatedBytes - was.AllocatedBytes; diff > -st.SizeBytes/100 && diff < st.SizeBytes/100 {
		st.AllocatedBytes = was.AllocatedBytes
	}
	if reflect.DeepEqual(was, st) {
		return nil
	}
	return a.report(ctx, api.KindVolume, v.Meta.ID, st)
}

// inUse: the hypervisor may have it open.
func (a *Agent) inUse(ctx context.Context, v api.Volume) bool {
	if v.Spec.Instance == "" {
		return false
	}
	s, err := a.o.Machines.Status(ctx, v.Spec.Instance)
	return err != nil || s.State.Active()
}

func (a *Agent) endVolume(ctx context.Context, v api.Volume) (time.Duration, error) {
	if a.inUse(ctx, v) {
		return time.Second, nil
	}
	if err := a.meterVolume(ctx, v); err != nil {
		return 0, err
	}
	if err := a.o.Volumes.DeleteVolume(ctx, api.VolumeID(v.Meta.ID)); err != nil && api.CodeOf(err) != api.CodeNotFound {
		return 0, err
	}
	if err := a.endMetering(v.Meta.ID); err != nil {
		return 0, err
	}
	return 0, a.forget(ctx, api.KindVolume, v.Meta.ID)
}
