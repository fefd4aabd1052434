package auth

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// A second factor is required by an organization (spec.requireTotp) of whoever
// has a role there, and by Options.RequireTotp of roles everywhere. It is asked of
// users with a password: who logs in with an identity provider alone proves what
// the provider asks for. One-time codes and passkeys both are one. A session of a user who has none set up may set it up,
// and nothing else.

// withoutTotp are the operations that such a session may do.
var withoutTotp = []string{"Whoami", "BeginTOTP", "ConfirmTOTP", "ListPasskeys", "BeginPasskey", "ConfirmPasskey", "ChangePassword", "ListSessions", "DeleteSession", "Logout"}

// requiresTotp reports whether a grant needs one-time codes. An organization's
// change is heard of as soon as this node has it.
func (a *Authenticator) requiresTotp(ctx context.Context, g api.Grant) (bool, error) {
	if slices.Contains(a.opts.RequireTotp, g.Role) {
		return true, nil
	}
	if g.Organization == "" {
		return false, nil
	}
	if a.opts.Stale != nil {
		ctx = a.opts.Stale(ctx)
	}
	o, err := a.opts.Store.Get(ctx, api.KindOrganization, g.Organization)
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil // it has nothing that a session could reach
		}
		return false, err
	}
	org, err := api.Decode[api.Organization](o)
	return org.Spec.RequireTotp, err
}

// HasFactor refuses what a session without a required second factor may not do.
func (i Identity) HasFactor(op string) error {
	if !i.NeedsTotp || slices.Contains(withoutTotp, op) {
		return nil
	}
	return api.Errorf(api.CodeForbidden, "a second factor is required for your account, but is not set up").At("totp").
		WithHint("set them up first: a passkey or one-time codes in the portal, or basalt totp enable")
}
