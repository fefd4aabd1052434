package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

func (w *world) factorTries() []try {
	return []try{
		{"A7 a second factor is turned off by the password, or a wrong code", "refused", w.factorOff},
		{"A7 a required second factor is walked around", "refused: forbidden, until codes are set up", w.factorAround},
	}
}

func unmarshal(a answer, into any) error { return json.Unmarshal(a.raw, into) }

const userPassword = "a word of the user's own"

// person creates a user of the attacker's organization and signs in.
func (w *world) person(ctx context.Context) (credentials api.Credentials, token string, err error) {
	email := w.tag + "-" + word() + "@example.com"
	if _, err = w.user(ctx, w.admin, email, userPassword, api.Meta{Organization: w.foe.Meta.ID}, api.Grant{Role: api.RoleAdmin, Organization: w.foe.Meta.ID}); err != nil {
		return credentials, "", err
	}
	credentials = api.Credentials{Email: email, Password: userPassword, Organization: w.foe.Meta.ID}
	s, a, err := w.login(ctx, credentials)
	if err == nil && s.Token == "" {
		err = fmt.Errorf("log in: %s", a)
	}
	return credentials, s.Token, err
}

// setUp enables one-time codes, and returns the code that it used.
func (w *world) setUp(ctx context.Context, token string) (code string, err error) {
	begun, err := fetch[api.TOTPSecret](ctx, w.wire, token, http.MethodPost, "/v1/totp", nil)
	if err != nil {
		return "", err
	}
	if code, err = totp.Code(begun.Secret, time.Now()); err != nil {
		return "", err
	}
	_, err = fetch[api.RecoveryCodes](ctx, w.wire, token, http.MethodPost, "/v1/totp/confirm", api.TOTPCode{Code: code})
	return code, err
}

func (w *world) factorOff(ctx context.Context) error {
	credentials, token, err := w.person(ctx)
	if err != nil {
		return err
	}
	used, err := w.setUp(ctx, token)
	if err != nil {
		return err
	}
	for name, code := range map[string]string{"no code": "", "a wrong code": "000000", "a used code": used, "a wrong recovery code": "aaaa-bbbb-cccc"} {
		a, err := w.once(ctx, token, http.MethodPost, "/v1/totp/disable", api.TOTPDisable{Password: userPassword, Code: code})
		if err != nil || a.ok() {
			return errors.Join(err, fmt.Errorf("with the password and %s: %s", name, a))
		}
	}
	for _, code := range []string{"", "000000", used} {
		credentials.Totp = code
		if _, a, err := w.login(ctx, credentials); err != nil || a.Code != api.CodeUnauthenticated {
			return errors.Join(err, fmt.Errorf("a login with code %q: %s", code, a))
		}
	}
	me, err := fetch[api.Identity](ctx, w.wire, token, http.MethodGet, "/v1/whoami", nil)
	if err == nil && !me.Totp {
		err = errors.New("the codes are off")
	}
	return err
}

func (w *world) factorAround(ctx context.Context) (err error) {
	_, token, err := w.person(ctx)
	if err != nil {
		return err
	}
	if err := w.change(ctx, w.op, w.foe, func(spec map[string]any) { spec["requireTotp"] = true }); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, w.change(ctx, w.op, w.foe, func(spec map[string]any) { delete(spec, "requireTotp") }))
	}()
	all, err := operations()
	if err != nil {
		return err
	}
	free := map[string]bool{"Whoami": true, "BeginTOTP": true, "ConfirmTOTP": true, "ListPasskeys": true, "BeginPasskey": true, "ConfirmPasskey": true, "ChangePassword": true, "ChooseLanguage": true, "ListSessions": true, "DeleteSession": true, "Logout": true,
		"GetVersion": true, "GetHealth": true, "GetBranding": true, "GetLogo": true, "Login": true, "SetPassword": true, "RequestPasswordReset": true, "GetSignUp": true, "RequestSignUp": true, "FinishSignUp": true, "ReceivePaymentEvent": true, "LoginWithLink": true,
		"ListLoginProviders": true, "BeginOIDCLogin": true, "FinishOIDCLogin": true, "GetSAMLMetadata": true, "ReceiveSAMLResponse": true, "BeginPasskeyLogin": true, "FinishPasskeyLogin": true}
	if err := each(all, func(op operation) error {
		if free[op.id] {
			return nil
		}
		a, err := w.ask(ctx, token, op.method, strings.ReplaceAll(op.path, "{id}", w.foe.Meta.ID), map[string]any{})
		if err == nil && a.Code != api.CodeForbidden {
			err = fmt.Errorf("%s: %s", op.id, a)
		}
		return err
	}); err != nil {
		return err
	}
	if _, err = w.setUp(ctx, token); err != nil {
		return err
	}
	_, err = fetch[api.ProjectList](ctx, w.wire, token, http.MethodGet, "/v1/projects", nil)
	return err
}
