package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// ResetUser invalidates a user's password, and with totp also its one-time codes, and
// returns the token that sets a new password.
func (a *API) ResetUser(ctx context.Context, id string, totp bool) (api.PasswordLink, error) {
	return post[api.PasswordLink](ctx, a, api.UserReset{Totp: totp}, "users", id, "reset")
}

// Login begins a session; the response contains its token.
func (a *API) Login(ctx context.Context, c api.Credentials) (api.Session, error) {
	return post[api.Session](ctx, a, c, "login")
}

// Logout ends the session of this client's token.
func (a *API) Logout(ctx context.Context) (api.Session, error) {
	return post[api.Session](ctx, a, nil, "logout")
}

// SetPassword sets a password with the token of a new or reset user, and returns whose
// it is.
func (a *API) SetPassword(ctx context.Context, token, password string) (api.PasswordSet, error) {
	return post[api.PasswordSet](ctx, a, api.PasswordToken{Token: token, Password: password}, "password", "link")
}

// ChangePassword changes the password of the session's user. All of the user's sessions
// end; the response is a new one.
func (a *API) ChangePassword(ctx context.Context, old, to string) (api.Session, error) {
	return post[api.Session](ctx, a, api.PasswordChange{Old: old, New: to}, "password")
}

// ChooseLanguage sets the language of mail to the session's user.
func (a *API) ChooseLanguage(ctx context.Context, language api.MailLanguage) (api.LanguageChoice, error) {
	return put[api.LanguageChoice](ctx, a, api.LanguageChoice{Language: language}, "language")
}

// BeginTOTP generates a secret for an authenticator; ConfirmTOTP with a code of it
// enables one-time codes, and returns recovery codes.
func (a *API) BeginTOTP(ctx context.Context) (api.TOTPSecret, error) {
	return post[api.TOTPSecret](ctx, a, nil, "totp")
}

// ConfirmTOTP enables one-time codes.
func (a *API) ConfirmTOTP(ctx context.Context, code string) (api.RecoveryCodes, error) {
	return post[api.RecoveryCodes](ctx, a, api.TOTPCode{Code: code}, "totp", "confirm")
}

// DisableTOTP disables one-time codes.
func (a *API) DisableTOTP(ctx context.Context, password, code string) (api.PasswordSet, error) {
	return post[api.PasswordSet](ctx, a, api.TOTPDisable{Password: password, Code: code}, "totp", "disable")
}

// Access returns the entries of a review of who has access, page by page; an error ends
// it.
func (a *API) Access(ctx context.Context, p api.ListAccessParams) iter.Seq2[api.AccessEntry, error] {
	return pages(func(from string) (Page[api.AccessEntry], error) {
		if from != "" {
			p.Continue = from
		}
		return get[Page[api.AccessEntry]](ctx, a, p, "access-review")
	})
}

// AuditEvents returns the events of an organization, or of all for an operator who
// names none, page by page; an error ends it.
func (a *API) AuditEvents(ctx context.Context, p api.ListAuditEventsParams) iter.Seq2[api.AuditEvent, error] {
	return pages(func(from string) (Page[api.AuditEvent], error) {
		if from != "" {
			p.Continue = from
		}
		return get[Page[api.AuditEvent]](ctx, a, p, "audit-events")
	})
}
