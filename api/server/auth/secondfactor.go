package auth

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// A second factor is required by an organization (spec.requireTotp) for all who have a
// role there, and by the security settings of the cluster for roles everywhere. It applies to users with
// a password: for others the identity provider decides. Both one-time codes and
// passkeys count. The session of a user who has none can set one up, and nothing else.

// withoutTotp are the operations that such a session may call.
var withoutTotp = []string{"Whoami", "BeginTOTP", "ConfirmTOTP", "ListPasskeys", "BeginPasskey", "ConfirmPasskey", "ChangePassword", "ChooseLanguage", "ListSessions", "DeleteSession", "Logout"}

// SecuritySettings returns the stored settings; revision 0 means that they were never
// changed.
func (a *Authenticator) SecuritySettings(ctx context.Context) (api.StoredSecuritySettings, error) {
	return api.Settings[api.StoredSecuritySettings](ctx, a.opts.Store, api.KindSecuritySettings, api.SecuritySettingsID)
}

// requiresTotp reports whether a grant needs a second factor. A change of the settings
// or of an organization takes effect as soon as this node has received it.
func (a *Authenticator) requiresTotp(ctx context.Context, g api.Grant) (bool, error) {
	if a.opts.Stale != nil {
		ctx = a.opts.Stale(ctx)
	}
	if s, err := a.SecuritySettings(ctx); err != nil || slices.Contains(s.Spec.RequireSecondFactor, g.Role) {
		return err == nil, err
	}
	if g.Organization == "" {
		return false, nil
	}
	o, err := a.opts.Store.Get(ctx, api.KindOrganization, g.Organization)
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil // a deleted organization has nothing to access
		}
		return false, err
	}
	org, err := api.Decode[api.Organization](o)
	return org.Spec.RequireTotp, err
}

// HasFactor returns an error if a session lacks a second factor that the operation
// needs.
func (i Identity) HasFactor(op string) error {
	if !i.NeedsTotp || slices.Contains(withoutTotp, op) {
		return nil
	}
	return api.Errorf(api.CodeForbidden, "a second factor is required for your account, but is not set up").At("totp").
		WithHint("set them up first: a passkey or one-time codes in the portal, or basalt totp enable")
}
