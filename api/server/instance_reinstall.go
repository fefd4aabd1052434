package server

import (
	"cmp"
	"context"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// ReinstallInstance replaces the root volume of a stopped instance with a new one made
// from an image or a backup, and deletes the old one in the same batch.
func (h *handlers) ReinstallInstance(ctx context.Context, r in[none, api.InstanceReinstall]) (*api.Instance, error) {
	o, err := h.own(ctx, api.KindInstance, r.ID)
	if err != nil {
		return nil, err
	}
	if err := h.active(ctx, o.Meta.Organization); err != nil {
		return nil, err
	}
	in, err := api.Decode[api.Instance](o)
	if err != nil {
		return nil, err
	}
	if err := reinstallable(in); err != nil {
		return nil, err
	}
	from, err := h.rootSource(ctx, in, *r.Body)
	if err != nil {
		return nil, err
	}
	old, err := h.rootOf(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := h.noSnapshots(ctx, "reinstall", in.Meta, old.Meta); err != nil {
		return nil, err
	}
	spec, volumes := reinstalled(in, old, from)
	out, err := put[api.Instance](ctx, h, o, o.Meta, spec, volumes)
	return &out, err
}

// rootSource returns what a new root volume of the instance is created from: a spec with
// an image or a backup, and its size, or an empty one for a blank volume.
func (h *handlers) rootSource(ctx context.Context, in api.Instance, r api.InstanceReinstall) (api.VolumeSpec, error) {
	if r.Backup != "" {
		if r.Image != "" {
			return api.VolumeSpec{}, api.Errorf(api.CodeInvalid, "a root volume is created from an image or from a backup, not from both").At("backup").WithHint("one of image and backup")
		}
		spec, err := h.madeFrom(ctx, in.Meta, api.VolumeSpec{Backup: r.Backup})
		return spec, allAt(err, "backup")
	}
	if r.Image == "" && in.Spec.Image == "" { // it was installed from a medium, and is again
		return api.VolumeSpec{}, nil
	}
	image, err := h.diskImage(ctx, in.Meta, string(cmp.Or(r.Image, in.Spec.Image)))
	if err != nil {
		return api.VolumeSpec{}, allAt(err, "image")
	}
	switch {
	case image.Meta.DeletedAt != nil || image.Status.Phase == api.ImageFailed:
		return api.VolumeSpec{}, api.Errorf(api.CodeState, "image %s cannot be used: its import failed or it is being deleted", image.Meta.Name).At("image").WithHint("%s", image.Status.Cause.Text(image.Status.LastError))
	case in.Spec.App != "" && image.Meta.ID != string(in.Spec.Image):
		return api.VolumeSpec{}, api.Errorf(api.CodeInvalid, "instance %s is of an app, which has its own image", in.Meta.Name).At("image").WithHint("leave the image out")
	}
	return api.VolumeSpec{Image: api.ImageID(image.Meta.ID), SizeBytes: image.Status.VirtualBytes}, nil
}

// allAt returns err with all its faults at one field of the request.
func allAt(err error, field string) error {
	if err == nil {
		return nil
	}
	return eachFault(err, func(e *api.Error) error {
		return api.Errorf(e.Code, "%s", e.Message).At(field).WithHint("%s", e.Hint)
	})
}

// reinstallable refuses an instance whose root volume may be in use.
func reinstallable(in api.Instance) error {
	st := in.Status
	switch {
	case in.Meta.DeletedAt != nil:
		return api.Errorf(api.CodeState, "instance %s is being deleted", in.Meta.Name)
	case in.Spec.Power != api.PowerStopped || st.Phase != api.InstanceStopped || st.ObservedGeneration < in.Meta.Generation || in.Assignment.MigrateTo != "":
		return api.Errorf(api.CodeState, "instance %s is not stopped: its root volume may be in use", in.Meta.Name).
			WithHint("stop it first, and wait until it is: basalt instance stop %s --wait", in.Meta.Name)
	}
	return nil
}

// rootOf returns the current root volume of an instance.
func (h *handlers) rootOf(ctx context.Context, in api.Instance) (api.Volume, error) {
	volumes, err := all[api.Volume](ctx, h, api.ListQuery{Kind: api.KindVolume, Project: in.Meta.Project})
	if err != nil {
		return api.Volume{}, err
	}
	for _, v := range volumes {
		if v.Spec.Root && string(v.Spec.Instance) == in.Meta.ID && v.Meta.DeletedAt == nil {
			return v, nil
		}
	}
	return api.Volume{}, api.Errorf(api.CodeState, "instance %s has no root volume", in.Meta.Name).WithHint("delete it and create another")
}

// reinstalled returns the instance's spec with a new root volume, and the commands that
// create it and delete the old one. The old one is detached, so that its deletion does
// not wait for the instance to stop; its quota use passes to the new one.
func reinstalled(in api.Instance, old api.Volume, from api.VolumeSpec) (api.InstanceSpec, []api.Command) {
	id, fresh := newID(api.KindVolume), from
	fresh.SizeBytes, fresh.Instance, fresh.Root = max(old.Spec.SizeBytes, from.SizeBytes), api.InstanceID(in.Meta.ID), true
	fresh.Pool, fresh.Qos = old.Spec.Pool, old.Spec.Qos
	loose := old.Spec
	loose.Root, loose.Instance, loose.Rollback = false, "", nil
	spec := in.Spec
	spec.Image, spec.RootVolume = cmp.Or(from.Image, in.Spec.Image), api.VolumeID(id)
	return spec, []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindVolume, ID: old.Meta.ID, Expect: old.Meta.Revision, Labels: old.Meta.Labels, Data: api.Encode(loose), Uses: api.Amounts{}},
		{Op: api.OpDelete, Kind: api.KindVolume, ID: old.Meta.ID, Expect: api.AnyRevision},
		{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: in.Meta.ID + "-root-" + strings.TrimPrefix(id, "vol-"), Organization: in.Meta.Organization, Project: in.Meta.Project,
			Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(fresh), Uses: fresh.Uses()},
	}
}
