package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// MailSettings returns the settings without the password.
func (a *API) MailSettings(ctx context.Context) (api.MailSettings, error) {
	return get[api.MailSettings](ctx, a, nil, "mail")
}

// UpdateMailSettings replaces the settings, unless they were changed since their
// revision.
func (a *API) UpdateMailSettings(ctx context.Context, s api.MailSettings) (api.MailSettings, error) {
	return put[api.MailSettings](ctx, a, s, "mail")
}

// PatchMailSettings changes the fields of the settings that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchMailSettings(ctx context.Context, changes any) (api.MailSettings, error) {
	return patch[api.MailSettings](ctx, a, changes, "mail")
}

// TestMail sends a test message to an address; empty means the caller's.
func (a *API) TestMail(ctx context.Context, to string) (api.MailMessage, error) {
	return post[api.MailMessage](ctx, a, api.MailTest{To: to}, "mail", "test")
}

// InviteUser sends a user a link that sets a password.
func (a *API) InviteUser(ctx context.Context, id string) (api.MailMessage, error) {
	return post[api.MailMessage](ctx, a, nil, "users", id, "invite")
}

// RequestPasswordReset requests a link by e-mail that sets a new password.
func (a *API) RequestPasswordReset(ctx context.Context, r api.PasswordResetRequest) (api.PasswordResetRequest, error) {
	return post[api.PasswordResetRequest](ctx, a, r, "password", "reset")
}
