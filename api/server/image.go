package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// imageSpec validates. A cluster-wide image is public, since nobody could use it
// otherwise. Only operators publish images to all organizations.
func (h *handlers) imageSpec(ctx context.Context, m api.Meta, old *api.Image, s api.ImageSpec) (api.ImageSpec, error) {
	if m.Project == "" {
		s.Public = true
	}
	if s.Public && (old == nil || !old.Spec.Public) && who(ctx).Role != api.RoleOperator {
		return s, api.Errorf(api.CodeForbidden, "only an operator may publish an image to every project").At("spec.public")
	}
	if err := api.ValidateImage(s); err != nil || old == nil {
		return s, err
	}
	return s, api.ChangeImage(old.Spec, s)
}
