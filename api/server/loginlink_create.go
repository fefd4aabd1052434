package server

import (
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// CreateServiceLoginLink creates a link that signs in the service's user.
func (h *handlers) CreateServiceLoginLink(ctx context.Context, r in[none, none]) (*api.LoginLink, error) {
	link, err := h.retried(ctx, func() (api.LoginLink, error) {
		s, u, err := h.userOf(ctx, r.ID)
		if err != nil {
			return api.LoginLink{}, err
		}
		return h.auth.NewLoginLink(ctx, u, auth.Held{Grant: grantOf(s.Spec)})
	})
	return &link, err
}

// CreateUserLoginLink creates a link for a user whom the caller manages and whose
// password the caller could reset.
func (h *handlers) CreateUserLoginLink(ctx context.Context, r in[api.CreateUserLoginLinkParams, none]) (*api.LoginLink, error) {
	link, err := h.retried(ctx, func() (api.LoginLink, error) {
		o, err := h.own(ctx, api.KindUser, api.Login(r.ID))
		if err != nil {
			return api.LoginLink{}, err
		}
		u, err := api.Decode[api.User](o)
		if err != nil {
			return api.LoginLink{}, err
		}
		g, err := h.auth.Chosen(ctx, u, r.Params.Organization, r.Params.Project)
		if err != nil {
			return api.LoginLink{}, fmt.Errorf("choose a role of user %s: %w", u.Meta.ID, err)
		}
		return h.auth.NewLoginLink(ctx, u, g)
	})
	return &link, err
}

// retried calls f again after a conflict, which occurs when two requests delete the
// same old link.
func (h *handlers) retried(ctx context.Context, f func() (api.LoginLink, error)) (api.LoginLink, error) {
	for try := 1; ; try++ {
		l, err := f()
		gone := err != nil && (api.CodeOf(err) == api.CodeConflict || api.CodeOf(err) == api.CodeNotFound && domainError(err).Field == "")
		if !gone || try == 3 || ctx.Err() != nil {
			return l, err
		}
	}
}
