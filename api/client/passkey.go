package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Passkeys returns the caller's passkeys.
func (a *API) Passkeys(ctx context.Context) (api.PasskeyList, error) {
	return get[api.PasskeyList](ctx, a, nil, "passkeys")
}

// BeginPasskey requests a challenge for a new passkey, whose response is passed to
// ConfirmPasskey.
func (a *API) BeginPasskey(ctx context.Context, name, password string) (api.PasskeyChallenge, error) {
	return post[api.PasskeyChallenge](ctx, a, api.PasskeyBegin{Name: name, Password: password}, "passkeys")
}

// ConfirmPasskey adds a passkey.
func (a *API) ConfirmPasskey(ctx context.Context, in api.PasskeyAnswer) (api.PasskeyAdded, error) {
	return post[api.PasskeyAdded](ctx, a, in, "passkeys", "confirm")
}

// DeletePasskey deletes one of the caller's passkeys.
func (a *API) DeletePasskey(ctx context.Context, id, password string) (api.Passkey, error) {
	return post[api.Passkey](ctx, a, api.PasskeyDelete{Password: password}, "passkeys", id, "delete")
}

// BeginPasskeyLogin requests a challenge that any passkey can answer;
// FinishPasskeyLogin begins a session with the response.
func (a *API) BeginPasskeyLogin(ctx context.Context) (api.PasskeyChallenge, error) {
	return post[api.PasskeyChallenge](ctx, a, nil, "login", "passkey")
}

// FinishPasskeyLogin begins a session.
func (a *API) FinishPasskeyLogin(ctx context.Context, in api.PasskeyLogin) (api.Session, error) {
	return post[api.Session](ctx, a, in, "login", "passkey", "finish")
}
