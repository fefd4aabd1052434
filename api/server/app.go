package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// app that a spec refers to, by id or name.
func (h *handlers) app(ctx context.Context, ref string) (api.App, error) {
	a, err := get[api.App](ctx, h, api.KindApp, ref, "", "")
	if api.CodeOf(err) == api.CodeNotFound {
		return a, api.Errorf(api.CodeInvalid, "App %s does not exist", ref).At("spec.app").WithHint("basalt app list")
	}
	return a, err
}

// fromApp fills in what a new instance leaves to its app, and says what the app
// needs.
func (h *handlers) fromApp(ctx context.Context, s api.InstanceSpec) (api.InstanceSpec, api.AppNeeds, error) {
	if s.App == "" {
		return s, api.AppNeeds{}, nil
	}
	a, err := h.app(ctx, string(s.App))
	if err != nil {
		return s, api.AppNeeds{}, err
	}
	s.App = api.AppID(a.Meta.ID)
	return a.Spec.Fill(s), a.Spec.Needs, nil
}

// ofApp explains that an image which is not there is the app's.
func ofApp(err error, asked, s api.InstanceSpec) error {
	if e := domainError(err); e != nil && e.Field == "spec.image" && asked.Image == "" && s.Image != "" {
		return api.Errorf(e.Code, "%s", e.Message).At("spec.app").
			WithHint("the app is made from a public image of that name, which an operator imports: basalt app get says from where")
	}
	return err
}

// sameApp is what a change of an instance says of its app: nothing, which leaves
// all as it is, or the app that it is made from, which may be gone meanwhile.
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

// ListApps pages through what the caller sees.
func (h *handlers) ListApps(ctx context.Context, r in[api.ListAppsParams, none]) (*page[api.App], error) {
	p, err := list[api.App](ctx, h, api.KindApp, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateApp makes one.
func (h *handlers) CreateApp(ctx context.Context, r in[api.CreateAppParams, api.App]) (*api.App, error) {
	m, err := h.place(ctx, api.KindApp, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := r.Body.Spec, api.ValidateApp(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.App](ctx, h, api.KindApp, newID(api.KindApp), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetApp by id or name.
func (h *handlers) GetApp(ctx context.Context, r in[none, none]) (*api.App, error) {
	o, err := get[api.App](ctx, h, api.KindApp, r.ID, "", "")
	return &o, err
}

// UpdateApp changes name, labels and spec.
func (h *handlers) UpdateApp(ctx context.Context, r in[none, api.App]) (*api.App, error) {
	o, err := update(ctx, h, api.KindApp, r.ID, r.Body.Meta, func(old api.App) (any, error) {
		return r.Body.Spec, api.ValidateApp(r.Body.Spec)
	})
	return &o, err
}

// DeleteApp deletes one; instances that were made from it stay.
func (h *handlers) DeleteApp(ctx context.Context, r in[none, none]) (*api.App, error) {
	o, err := remove[api.App](ctx, h, api.KindApp, r.ID)
	return &o, err
}
