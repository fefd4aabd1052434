package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// app returns the app that a spec refers to by ID or name.
func (h *handlers) app(ctx context.Context, ref string) (api.App, error) {
	a, err := get[api.App](ctx, h, api.KindApp, ref, "", "")
	if api.CodeOf(err) == api.CodeNotFound {
		return a, api.Errorf(api.CodeInvalid, "App %s does not exist", ref).At("spec.app").WithHint("basalt app list")
	}
	return a, err
}

// fromApp fills in the fields of a new instance that its app defines, and returns the
// app's needs and its image's abilities.
func (h *handlers) fromApp(ctx context.Context, s api.InstanceSpec) (api.InstanceSpec, api.AppSpec, error) {
	if s.App == "" {
		return s, api.AppSpec{}, nil
	}
	a, err := h.app(ctx, string(s.App))
	if err != nil {
		return s, api.AppSpec{}, err
	}
	s.App = api.AppID(a.Meta.ID)
	return a.Spec.Fill(s), a.Spec, nil
}

// ofApp rewrites an error about a missing image that came from the app. Without the
// app, the image is unknown.
func ofApp(err error, asked, s api.InstanceSpec, appless bool) error {
	return eachFault(err, func(e *api.Error) error {
		switch {
		case e.Field != "spec.image" || asked.Image != "":
			return e
		case appless:
			return nil
		case s.Image != "":
			return api.Errorf(e.Code, "%s", e.Message).At("spec.app").
				WithHint("the app needs a public image of that name, which an operator imports: basalt app get shows its source")
		}
		return e
	})
}

// sameApp returns the changed spec with its app filled in. A change may leave the app
// out, which keeps all fields unchanged, or name the app that the instance was created
// from, which may have been deleted.
func (h *handlers) sameApp(ctx context.Context, old, s api.InstanceSpec) (api.InstanceSpec, error) {
	switch s.App {
	case old.App:
	case "":
		s.App = old.App
	default:
		a, err := h.app(ctx, string(s.App))
		if err != nil {
			return s, err
		}
		s.App = api.AppID(a.Meta.ID)
	}
	if s.App != "" && s.Image == "" {
		s.Image = old.Image
	}
	return s, nil
}
