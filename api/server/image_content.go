package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// image returns the image that a spec refers to: by ID, or by name among the project's
// images, then among the cluster's public ones.
func (h *handlers) image(ctx context.Context, m api.Meta, ref string) (api.Image, error) {
	me := who(ctx)
	o, err := h.opts.Store.Get(ctx, api.KindImage, ref)
	if err == nil && me.Sees(o) && usable(o, m) {
		return api.Decode[api.Image](o)
	}
	if err != nil && api.CodeOf(err) != api.CodeNotFound {
		return api.Image{}, fmt.Errorf("read image %s: %w", ref, err)
	}
	var own, public *api.Object
	err = h.each(ctx, api.ListQuery{Kind: api.KindImage, Name: ref}, func(o api.Object) bool {
		switch {
		case o.Meta.Project == m.Project && o.Meta.Organization == m.Organization:
			own = &o
		case o.Meta.Project == "" && usable(o, m):
			public = &o
		}
		return own == nil
	})
	if err != nil {
		return api.Image{}, err
	}
	if own == nil {
		own = public
	}
	if own == nil {
		return api.Image{}, api.Errorf(api.CodeInvalid, "Image %s does not exist", ref).At("spec.image").WithHint("basalt image list")
	}
	return api.Decode[api.Image](*own)
}

// diskImage returns the image that a volume is created from.
func (h *handlers) diskImage(ctx context.Context, m api.Meta, ref string) (api.Image, error) {
	image, err := h.image(ctx, m, ref)
	if err == nil && image.Spec.Format == api.FormatISO {
		err = api.Errorf(api.CodeInvalid, "image %s is an installation medium, want a disk image", image.Meta.Name).At("spec.image").
			WithHint("insert it into a CD drive of an instance: --cdrom")
	}
	return image, err
}

// media returns the IDs of the images in an instance's CD drives. Those that it had
// before are not checked again.
func (h *handlers) media(ctx context.Context, m api.Meta, had, want []api.ImageID) ([]api.ImageID, error) {
	if len(want) > api.MaxMedia { // refused by ValidateInstance
		return want, nil
	}
	ids := slices.Clone(want)
	for i, ref := range want {
		if ref == "" || slices.Contains(had, ref) {
			continue
		}
		var err error
		if ids[i], err = h.medium(ctx, m, ref, "spec.media"); err != nil {
			return want, err
		}
	}
	return ids, nil
}

// medium returns the ID of an image of format iso that an instance may use. An error
// is at the field.
func (h *handlers) medium(ctx context.Context, m api.Meta, ref api.ImageID, field string) (api.ImageID, error) {
	if ref == "" {
		return "", api.Errorf(api.CodeInvalid, "choose a medium").At(field).WithHint("an image of format iso: basalt image list")
	}
	image, err := h.image(ctx, m, string(ref))
	switch {
	case err != nil:
		return "", allAt(err, field)
	case image.Spec.Format != api.FormatISO:
		return "", api.Errorf(api.CodeInvalid, "image %s is a disk image, want an installation medium", image.Meta.Name).At(field).WithHint("choose an image of format iso")
	case image.Meta.DeletedAt != nil || image.Status.Phase == api.ImageFailed:
		return "", api.Errorf(api.CodeState, "image %s cannot be used: its import failed or it is being deleted", image.Meta.Name).At(field).WithHint("%s", image.Status.Cause.Text(image.Status.LastError))
	}
	return api.ImageID(image.Meta.ID), nil
}

// usable reports whether a project may use an image: its own, or a public one.
func usable(o api.Object, m api.Meta) bool {
	image, err := api.Decode[api.Image](o)
	return err == nil && (o.Meta.Project == m.Project || image.Spec.Public)
}

// PutImageContent forwards an image's bytes to the node that stores them.
func (h *handlers) PutImageContent(ctx context.Context, r in[none, stream]) (*api.Image, error) {
	o, err := h.own(ctx, api.KindImage, r.ID)
	if err != nil {
		return nil, err
	}
	if err := h.active(ctx, o.Meta.Organization); err != nil {
		return nil, err
	}
	image, err := api.Decode[api.Image](o)
	switch {
	case err != nil:
		return nil, err
	case h.opts.Runtime == nil:
		return nil, api.Errorf(api.CodeUnavailable, "image upload is not available on this server")
	case image.Spec.URL != "":
		return nil, api.Errorf(api.CodeState, "cannot upload to image %s: it is imported from its URL", image.Meta.Name)
	case image.Status.Phase == api.ImageReady:
		return nil, api.Errorf(api.CodeState, "cannot upload to image %s: it is already imported", image.Meta.Name).WithHint("import another image")
	case image.Meta.DeletedAt != nil:
		return nil, api.Errorf(api.CodeState, "image %s is being deleted", image.Meta.Name)
	}
	if err := h.opts.Runtime.PutImage(ctx, api.ImageID(o.Meta.ID), r.Body, auth.Request(ctx).ContentLength); err != nil {
		return nil, fmt.Errorf("receive the content of image %s: %w", o.Meta.ID, err)
	}
	now, err := get[api.Image](ctx, h, api.KindImage, o.Meta.ID, "", "")
	return &now, err
}
