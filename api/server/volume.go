package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// volumeSpec turns names into ids and validates. A root volume is made with its
// instance only.
func (h *handlers) volumeSpec(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	if s.Image != "" {
		image, err := h.image(ctx, m, string(s.Image))
		if err != nil {
			return s, err
		}
		s.Image = api.ImageID(image.Meta.ID)
		if least := image.Status.VirtualBytes; s.SizeBytes == 0 {
			s.SizeBytes = least
		} else if s.SizeBytes < least {
			return s, api.Errorf(api.CodeInvalid, "%d bytes are less than image %s has: %d", s.SizeBytes, image.Meta.Name, least).At("spec.sizeBytes")
		}
	}
	if s.Instance != "" && !s.Root {
		o, err := h.find(ctx, api.KindInstance, string(s.Instance), m.Organization, m.Project)
		if err == nil && (o.Meta.Project != m.Project || o.Meta.DeletedAt != nil) {
			err = notFound(api.KindInstance, string(s.Instance))
		}
		if err != nil {
			return s, at(err, "spec.instance")
		}
		s.Instance = api.InstanceID(o.Meta.ID)
	}
	return s, api.ValidateVolume(s)
}

func (h *handlers) newVolumeSpec(ctx context.Context, m api.Meta, s api.VolumeSpec) (api.VolumeSpec, error) {
	if s.Root {
		return s, api.Errorf(api.CodeInvalid, "a root volume is made with its instance").At("spec.root").WithHint("make an instance")
	}
	return h.volumeSpec(ctx, m, s)
}

// ListVolumes pages through what the caller sees.
func (h *handlers) ListVolumes(ctx context.Context, r ListVolumesRequestObject) (ListVolumesResponseObject, error) {
	p, err := list[api.Volume](ctx, h, api.KindVolume, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name,
		organization: r.Params.Organization, project: r.Params.Project})
	return ListVolumes200JSONResponse(p), err
}

// CreateVolume makes one.
func (h *handlers) CreateVolume(ctx context.Context, r CreateVolumeRequestObject) (CreateVolumeResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	m, err := h.place(ctx, api.KindVolume, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.newVolumeSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Volume](ctx, h, api.KindVolume, newID(api.KindVolume), m, spec, r.Params.IdempotencyKey)
	return CreateVolume201JSONResponse(o), err
}

// GetVolume by id or name.
func (h *handlers) GetVolume(ctx context.Context, r GetVolumeRequestObject) (GetVolumeResponseObject, error) {
	o, err := get[api.Volume](ctx, h, api.KindVolume, r.ID, r.Params.Organization, r.Params.Project)
	return GetVolume200JSONResponse(o), err
}

// UpdateVolume changes name, labels and spec.
func (h *handlers) UpdateVolume(ctx context.Context, r UpdateVolumeRequestObject) (UpdateVolumeResponseObject, error) {
	h.references.RLock()
	defer h.references.RUnlock()
	o, err := update(ctx, h, api.KindVolume, r.ID, r.Body.Meta, func(old api.Volume) (any, error) {
		s := r.Body.Spec
		if err := api.ChangeVolume(old.Spec, s); err != nil && s.Image == old.Spec.Image {
			return nil, err
		}
		s, err := h.volumeSpec(ctx, old.Meta, s)
		if err != nil {
			return nil, err
		}
		return s, api.ChangeVolume(old.Spec, s)
	})
	return UpdateVolume200JSONResponse(o), err
}

// DeleteVolume deletes one that nothing uses.
func (h *handlers) DeleteVolume(ctx context.Context, r DeleteVolumeRequestObject) (DeleteVolumeResponseObject, error) {
	o, err := remove[api.Volume](ctx, h, api.KindVolume, r.ID)
	return DeleteVolume200JSONResponse(o), err
}
