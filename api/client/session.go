package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Users are the collection of kind User.
func (a *API) Users() Collection[api.User] {
	return Collection[api.User]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListUsers(ctx, &api.ListUsersParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetUser(ctx, ref, &api.GetUserParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.User) (*http.Response, error) { return a.gen.CreateUser(ctx, o) },
		update: func(ctx context.Context, id string, o api.User) (*http.Response, error) {
			return a.gen.UpdateUser(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteUser(ctx, id) },
	}
}

// ResetUser voids a user's password, and with totp its one-time codes, and
// answers the token that sets a new one.
func (a *API) ResetUser(ctx context.Context, id string, totp bool) (api.PasswordLink, error) {
	return decode[api.PasswordLink](a.gen.ResetUser(ctx, id, api.UserReset{Totp: totp})) //nolint:bodyclose // decode closes it
}

// Login begins a session; its token is in the answer.
func (a *API) Login(ctx context.Context, c api.Credentials) (api.Session, error) {
	return decode[api.Session](a.gen.Login(ctx, c)) //nolint:bodyclose // decode closes it
}

// Logout ends the session whose token this client has.
func (a *API) Logout(ctx context.Context) (api.Session, error) {
	return decode[api.Session](a.gen.Logout(ctx)) //nolint:bodyclose // decode closes it
}

// SetPassword with the token of a new or reset user, and answers whose it is.
func (a *API) SetPassword(ctx context.Context, token, password string) (api.PasswordSet, error) {
	return decode[api.PasswordSet](a.gen.SetPassword(ctx, api.PasswordToken{Token: token, Password: password})) //nolint:bodyclose // decode closes it
}

// ChangePassword of whose session this is. All its sessions end; the answer is
// a new one.
func (a *API) ChangePassword(ctx context.Context, old, to string) (api.Session, error) {
	return decode[api.Session](a.gen.ChangePassword(ctx, api.PasswordChange{Old: old, New: to})) //nolint:bodyclose // decode closes it
}

// BeginTOTP makes a secret for an authenticator; ConfirmTOTP with a code of it
// turns one-time codes on, and answers recovery codes.
func (a *API) BeginTOTP(ctx context.Context) (api.TOTPSecret, error) {
	return decode[api.TOTPSecret](a.gen.BeginTOTP(ctx)) //nolint:bodyclose // decode closes it
}

// ConfirmTOTP turns one-time codes on.
func (a *API) ConfirmTOTP(ctx context.Context, code string) (api.RecoveryCodes, error) {
	return decode[api.RecoveryCodes](a.gen.ConfirmTOTP(ctx, api.TOTPCode{Code: code})) //nolint:bodyclose // decode closes it
}

// DisableTOTP turns one-time codes off.
func (a *API) DisableTOTP(ctx context.Context, password, code string) (api.PasswordSet, error) {
	return decode[api.PasswordSet](a.gen.DisableTOTP(ctx, api.TOTPDisable{Password: password, Code: code})) //nolint:bodyclose // decode closes it
}

// AuditEvents of an organization, or of all for an operator who names none,
// page by page; an error ends it.
func (a *API) AuditEvents(ctx context.Context, p api.ListAuditEventsParams) iter.Seq2[api.AuditEvent, error] {
	return func(yield func(api.AuditEvent, error) bool) {
		for {
			page, err := decode[api.AuditEventList](a.gen.ListAuditEvents(ctx, &p)) //nolint:bodyclose // decode closes it
			if err != nil {
				yield(api.AuditEvent{}, err)
				return
			}
			for _, e := range page.Items {
				if !yield(e, nil) {
					return
				}
			}
			if p.Continue = page.Continue; p.Continue == "" {
				return
			}
		}
	}
}
