package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/captcha"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// A sign-up stores nothing but the message with its link, and the number of such
// messages is limited. The token is sealed by the cluster and contains the address that
// it was sent to. It is valid until it expires or a user has claimed the address.
type signUpToken struct {
	Use   string `json:"use"` // signUpUse, which distinguishes it from other sealed texts
	Email string `json:"email"`
	// Reseller is the reseller in whose portal the link was requested, and is valid: each
	// has a captcha, terms and a credit of its own. Empty: the cluster's.
	Reseller string    `json:"reseller,omitempty"`
	Until    time.Time `json:"until"`
}

const signUpUse = "sign-up"

// maxSignUpToken limits the size of a token that is checked, in bytes.
const maxSignUpToken = 4 << 10

// SignUpSettings returns the stored settings of a reseller, or those of the cluster if it
// is empty; revision 0 means that they were never changed.
func (a *Authenticator) SignUpSettings(ctx context.Context, reseller string) (api.StoredSignUpSettings, error) {
	return api.Settings[api.StoredSignUpSettings](ctx, a.opts.Store, api.KindSignUpSettings, api.SignUpSettingsIDOf(reseller))
}

// GetSignUp returns whether sign-up is enabled, and the terms to accept.
func (a *Authenticator) GetSignUp(ctx context.Context) (*api.SignUpInfo, error) {
	s, err := a.SignUpOpen(ctx)
	if err != nil && api.CodeOf(err) == api.CodeState {
		return &api.SignUpInfo{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &api.SignUpInfo{Enabled: true, TermsURL: s.TermsURL, TermsVersion: s.TermsVersion, Captcha: s.Captcha, SiteKey: s.SiteKey}, nil
}

// RequestSignUp queues a message with a link that creates an account, or, if the
// address already has one, a message that says so. The response is the same.
func (a *Authenticator) RequestSignUp(ctx context.Context, in *api.SignUpRequest) (*api.SignUpRequest, error) {
	email, now := api.Login(in.Email), a.opts.Now().UTC()
	s, err := a.SignUpOpen(ctx)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateLogin(email); err != nil {
		return nil, api.Errorf(api.CodeInvalid, "must be an e-mail address").At("email").WithHint("e.g. ann@example.com")
	}
	if !a.signUpsFrom.take(addressOf(Request(ctx)), now) {
		return nil, errSlow
	}
	if !s.AllowsAddress(email) {
		return nil, api.Errorf(api.CodeForbidden, "addresses of this domain cannot sign up").At("email").WithHint("use the address of your company, or ask your provider of this service")
	}
	if err := a.withinRates(ctx, s); err != nil {
		return nil, err
	}
	if err := a.solved(ctx, s.SignUpSettingsSpec, in.Captcha); err != nil {
		return nil, err
	}
	if err := a.roomForSignUp(ctx, s); err != nil {
		return nil, err
	}
	out := &api.SignUpRequest{Email: in.Email}
	if !a.signUpsOf.take(email, now) {
		return out, nil
	}
	return out, a.mailSignUp(ctx, s.Reseller, email, now)
}

// solved verifies the captcha, if one is configured. If its provider is unreachable,
// the captcha counts as unsolved.
func (a *Authenticator) solved(ctx context.Context, s api.SignUpSettingsSpec, token string) error {
	if s.Captcha == "" {
		return nil
	}
	secret, err := a.unsealed(ctx, s.CaptchaSecret)
	if err != nil {
		return err
	}
	err = a.captchas.Verify(ctx, s.VerifyURL, secret, token)
	switch {
	case errors.Is(err, captcha.ErrNotSolved):
		return api.Errorf(api.CodeInvalid, "the captcha was not solved, or too long ago").At("captcha").WithHint("solve it again")
	case err != nil:
		a.opts.Log.Warn("verify captcha failed", "error", err)
		return api.Errorf(api.CodeUnavailable, "the captcha cannot be verified now").WithHint("try again in a minute")
	}
	return nil
}

// roomForSignUp returns an error if too many messages are waiting, for example because
// the mail server is unreachable or robots request them: of all portals, or of those of
// one highest reseller.
func (a *Authenticator) roomForSignUp(ctx context.Context, s SignUp) error {
	all, theirs := 0, 0
	err := pages.Each(ctx, a.opts.Store, api.ListQuery{Kind: api.KindMailMessage}, func(o api.Object) bool {
		if m, err := api.Decode[api.MailMessage](o); err == nil && !m.Done() && (m.Spec.Type == api.MailTypeSignUp || m.Spec.Type == api.MailTypeSignUpKnown) {
			all++
			if s.root != "" && a.rootOf(ctx, m.Spec.Organization) == s.root {
				theirs++
			}
		}
		return all < api.MaxPendingSignUps && theirs < api.MaxPendingResellerSignUps
	})
	if err == nil && (all >= api.MaxPendingSignUps || theirs >= api.MaxPendingResellerSignUps) {
		err = api.Errorf(api.CodeRateLimited, "many people are signing up now").WithHint("try again later")
	}
	return err
}

// mailSignUp queues the message of a sign-up in the portal of a reseller, or of the cluster if
// it is empty. The owner of an account gets a message of the portal where that can sign in.
func (a *Authenticator) mailSignUp(ctx context.Context, reseller, email string, now time.Time) error {
	u, err := a.UserFor(ctx, email, "")
	if err != nil {
		return err
	}
	end := now.Add(api.SignUpLife).Truncate(time.Second)
	token, err := a.Sealed(ctx, string(api.Encode(signUpToken{Use: signUpUse, Email: email, Reseller: reseller, Until: end})))
	if err != nil {
		return err
	}
	sealed, err := a.Sealed(ctx, token)
	if err != nil {
		return err
	}
	m := api.MailMessageSpec{Type: api.MailTypeSignUp, To: email, Language: Spoken(ctx), Organization: reseller, Secret: sealed, ExpiresAt: &end}
	if u.Meta.ID != "" {
		m.Type, m.Organization, m.Secret = api.MailTypeSignUpKnown, u.Meta.Organization, ""
	}
	_, err = a.opts.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{api.QueueMail(api.RandomID(api.KindMailMessage), m)}})
	if err != nil {
		return fmt.Errorf("queue the mail of a sign-up: %w", err)
	}
	return nil
}

// SigningUp returns the address that a token was sent to. It must have been requested in
// the portal of the same reseller.
func (a *Authenticator) SigningUp(ctx context.Context, token, reseller string) (email string, err error) {
	now := a.opts.Now()
	refused := api.Errorf(api.CodeInvalid, "the link is not valid, or has expired").At("token").WithHint("sign up again")
	if token == "" || len(token) > maxSignUpToken || a.opts.Secrets == nil {
		return "", a.refused(Request(ctx), "", refused, now)
	}
	var t signUpToken
	plain, err := a.unsealed(ctx, token)
	if err != nil || json.Unmarshal([]byte(plain), &t) != nil || t.Use != signUpUse || !now.Before(t.Until) || api.ValidateLogin(t.Email) != nil {
		return "", a.refused(Request(ctx), "", refused, now)
	}
	if t.Reseller != reseller {
		return "", api.Errorf(api.CodeInvalid, "the link belongs to another portal").At("token").WithHint("open the address in the message, or sign up here again")
	}
	return t.Email, nil
}

// FirstSession returns the command that begins the session of a new user, and the
// session.
func (a *Authenticator) FirstSession(ctx context.Context, u api.User, g api.Grant) (api.Command, api.Session) {
	return a.newSession(u, Held{Grant: g}, Credentials(u).Epoch, addressOf(Request(ctx)))
}

// AddressOf returns what the request's client is counted by.
func AddressOf(ctx context.Context) string { return addressOf(Request(ctx)) }

// By returns a context whose changes are recorded in the audit log under a user who has
// no session yet.
func By(ctx context.Context, u api.User) context.Context { return by(ctx, u) }
