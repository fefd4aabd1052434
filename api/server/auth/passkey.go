package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/passkey"
)

// Adding a passkey, and signing in with one, takes two requests, which may arrive at
// two nodes: the state that the second needs is a sealed text that the client keeps, as
// for an identity provider (oidclogin.go). The used challenge is recorded in the user's
// credentials, in the batch that uses the response: of two concurrent responses the
// store refuses the second, since it was made from an older revision.
//
//	begin ─► options, flow      browser ─► authenticator ─► credential      finish(flow, credential)
const passkeyLife = 5 * time.Minute

const (
	maxPasskeys        = 20
	maxPasskeyName     = 64 // characters
	maxUsedChallenges  = 64 // of a user within passkeyLife
	maxPasskeyFlow     = 16 << 10
	passkeyAddUse      = "passkey-add"
	passkeyLoginUse    = "passkey-login"
	passkeyPortalField = "portalURL"
)

// passkeyFlow is the content of the sealed text.
type passkeyFlow struct {
	Use     string          `json:"use"` // distinguishes it from other sealed texts
	ID      string          `json:"id"`
	User    api.UserID      `json:"user,omitempty"` // the user who adds a passkey
	Name    string          `json:"name,omitempty"` // of the passkey
	Session json.RawMessage `json:"session"`
	Until   time.Time       `json:"until"`
}

func errPasskey() error {
	return api.Errorf(api.CodeUnauthenticated, "the passkey was not accepted").At("credential").WithHint("try again, or sign in with your password; the server's log has the reason")
}

func errPasskeyOver() error {
	return api.Errorf(api.CodeUnauthenticated, "this challenge was not made here, was already used or has expired").At("flow").WithHint("start again")
}

func errManyPasskeys() error {
	return api.Errorf(api.CodeRateLimited, "too many sign-ins at the same time").WithHint("try again in a second")
}

// site returns the site of the portal that the request was sent to, derived from the URL of
// its links. Passkeys belong to one name: those made in one portal do not work in another.
func (a *Authenticator) site(ctx context.Context) (passkey.Site, error) {
	m, err := a.MailSettings(ctx)
	if err != nil {
		return passkey.Site{}, err
	}
	p, err := a.Portal(ctx)
	if err != nil {
		return passkey.Site{}, err
	}
	s, err := passkey.SiteOf(api.NearestBranding{Domain: p.Domain}.Portal(m.Spec.PortalURL))
	if err == nil && a.opts.Secrets == nil {
		err = errors.New("this server cannot seal challenges")
	}
	if err != nil {
		return s, api.Errorf(api.CodeState, "passkeys are not available: %s", err).At(passkeyPortalField).
			WithHint("passkeys belong to a name: an operator sets the portal's address, https:// and a domain, in the mail settings")
	}
	return s, nil
}

// ownerOf returns a user in the form that authenticators use, with the passkeys of a
// site.
func ownerOf(u api.User, c api.UserCredentials, site passkey.Site) passkey.Owner {
	o := passkey.Owner{ID: u.Meta.ID, Name: u.Meta.Name}
	for _, p := range c.Passkeys {
		if p.Site == site.Name {
			o.Keys = append(o.Keys, passkey.Key{ID: p.CredentialID, PublicKey: p.PublicKey, Flags: byte(p.Flags), SignCount: uint32(p.SignCount)})
		}
	}
	return o
}

// sealedChallenge returns a challenge in the form that the client gets.
func (a *Authenticator) sealedChallenge(ctx context.Context, c passkey.Challenge, f passkeyFlow) (*api.PasskeyChallenge, error) {
	f.ID, f.Session, f.Until = rand.Text(), c.Session, a.opts.Now().UTC().Add(passkeyLife)
	sealed, err := a.opts.Secrets.Seal(ctx, string(api.Encode(f)))
	if err != nil {
		return nil, fmt.Errorf("encrypt the challenge of a passkey: %w", err)
	}
	return &api.PasskeyChallenge{Flow: sealed, Options: c.Options}, nil
}

// openPasskeyFlow opens a text that this cluster has sealed for this use and that has
// not expired.
func (a *Authenticator) openPasskeyFlow(ctx context.Context, sealed, use string) (f passkeyFlow, err error) {
	if sealed == "" || len(sealed) > maxPasskeyFlow {
		return f, errPasskeyOver()
	}
	plain, err := a.opts.Secrets.Open(ctx, sealed)
	if err != nil || json.Unmarshal([]byte(plain), &f) != nil || f.Use != use || f.ID == "" || !a.opts.Now().Before(f.Until) {
		return f, errPasskeyOver()
	}
	return f, nil
}

// spend records that the challenge of a login was used, and drops expired ones; used is
// the error if it already was.
func spend(c *api.UserCredentials, id string, until, now time.Time, used error) error {
	c.UsedChallenges = slices.DeleteFunc(slices.Clone(c.UsedChallenges), func(u api.UsedChallenge) bool { return !now.Before(u.Until) })
	if slices.ContainsFunc(c.UsedChallenges, func(u api.UsedChallenge) bool { return u.ID == id }) {
		return used
	}
	if len(c.UsedChallenges) >= maxUsedChallenges {
		return api.Errorf(api.CodeRateLimited, "too many sign-ins of this user").WithHint("try again in %s", flowLife)
	}
	c.UsedChallenges = append(c.UsedChallenges, api.UsedChallenge{ID: id, Until: until})
	return nil
}

// BeginPasskey returns the challenge for a new passkey of the caller; it needs the
// password.
func (a *Authenticator) BeginPasskey(ctx context.Context, in *api.PasskeyBegin) (*api.PasskeyChallenge, error) {
	u, site, err := a.passkeyOwner(ctx)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSpace(in.Name)
	if err := passkeyName(name, Credentials(u)); err != nil {
		return nil, err
	}
	if err := a.confirmed(ctx, &u, "password", in.Password); err != nil {
		return nil, err
	}
	c, err := site.BeginRegistration("Basalt", ownerOf(u, Credentials(u), site))
	if err != nil {
		return nil, fmt.Errorf("begin to register a passkey of user %s: %w", u.Meta.ID, err)
	}
	return a.sealedChallenge(ctx, c, passkeyFlow{Use: passkeyAddUse, User: api.UserID(u.Meta.ID), Name: name})
}

// passkeyOwner returns the caller, if they may have passkeys, and their site. Users of
// an identity provider cannot have any, since a passkey would still work after the
// provider has revoked their access.
func (a *Authenticator) passkeyOwner(ctx context.Context) (api.User, passkey.Site, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return u, passkey.Site{}, err
	}
	if Credentials(u).PasswordHash == "" {
		return u, passkey.Site{}, api.Errorf(api.CodeState, "you sign in with an identity provider, and not with a password or passkey").WithHint("add a passkey there, if it has them")
	}
	site, err := a.site(ctx)
	return u, site, err
}

func passkeyName(name string, c api.UserCredentials) error {
	hidden := func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }
	switch {
	case name == "" || utf8.RuneCountInString(name) > maxPasskeyName || strings.ContainsFunc(name, hidden):
		return api.Errorf(api.CodeInvalid, "must have 1 to %d characters, and no control characters", maxPasskeyName).At("name").WithHint("e.g. laptop")
	case slices.ContainsFunc(c.Passkeys, func(p api.StoredPasskey) bool { return p.Name == name }):
		return api.Errorf(api.CodeExists, "you already have a passkey named %q", name).At("name").WithHint("choose another name")
	case len(c.Passkeys) >= maxPasskeys:
		return api.Errorf(api.CodeState, "you already have %d passkeys", maxPasskeys).WithHint("delete one that you no longer use")
	}
	return nil
}

// ConfirmPasskey adds the passkey that an authenticator has created.
func (a *Authenticator) ConfirmPasskey(ctx context.Context, in *api.PasskeyAnswer) (*api.PasskeyAdded, error) {
	u, site, err := a.passkeyOwner(ctx)
	if err != nil {
		return nil, err
	}
	refused := func(err error) error { // the session itself is valid
		var e *api.Error
		if errors.As(err, &e) && e.Code == api.CodeUnauthenticated {
			return api.Errorf(api.CodeInvalid, "%s", e.Message).At(e.Field).WithHint("%s", e.Hint)
		}
		return err
	}
	f, err := a.openPasskeyFlow(ctx, in.Flow, passkeyAddUse)
	if err != nil || f.User != api.UserID(u.Meta.ID) {
		return nil, refused(errPasskeyOver())
	}
	c, now := Credentials(u), a.opts.Now().UTC()
	if err := passkeyName(f.Name, c); err != nil {
		return nil, err
	}
	if err := spend(&c, f.ID, f.Until, now, errPasskeyOver()); err != nil {
		return nil, refused(err)
	}
	key, err := site.FinishRegistration(ownerOf(u, c, site), f.Session, in.Credential)
	known := slices.ContainsFunc(c.Passkeys, func(p api.StoredPasskey) bool { return slices.Equal(p.CredentialID, key.ID) })
	if err != nil || known {
		a.opts.Log.Warn("add passkey failed", "user", u.Meta.ID, "known", known, "error", clipped(cmp.Or(err, errors.New("the authenticator's passkey is already known"))))
		return nil, refused(errPasskey())
	}
	p := api.StoredPasskey{ID: strings.ToLower(rand.Text()[:12]), Name: f.Name, Site: site.Name, CredentialID: key.ID, PublicKey: key.PublicKey,
		Flags: int32(key.Flags), SignCount: int64(key.SignCount), CreatedAt: now.Truncate(time.Second)}
	out := api.PasskeyAdded{Passkey: shownPasskey(p)}
	if !hasFactor(c) {
		out.Codes, c.RecoveryCodes = newRecoveryCodes()
	}
	c.Passkeys = append(c.Passkeys, p)
	return &out, a.WriteCredentials(ctx, u, c)
}

func shownPasskey(p api.StoredPasskey) api.Passkey {
	return api.Passkey{ID: p.ID, Name: p.Name, Site: p.Site, Synced: passkey.Key{Flags: byte(p.Flags)}.Synced(), CreatedAt: p.CreatedAt, UsedAt: p.UsedAt}
}

// ListPasskeys returns the caller's passkeys.
func (a *Authenticator) ListPasskeys(ctx context.Context) (*api.PasskeyList, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	out := api.PasskeyList{Items: []api.Passkey{}}
	for _, p := range Credentials(u).Passkeys {
		out.Items = append(out.Items, shownPasskey(p))
	}
	site, err := a.site(ctx)
	var e *api.Error
	if errors.As(err, &e) && e.Code == api.CodeState {
		out.Unavailable, err = e.Message, nil
	}
	out.Site = site.Name
	return &out, err
}

// DeletePasskey deletes one of the caller's passkeys; it needs the password.
func (a *Authenticator) DeletePasskey(ctx context.Context, id string, in *api.PasskeyDelete) (*api.Passkey, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	c, me := Credentials(u), Caller(ctx)
	i := slices.IndexFunc(c.Passkeys, func(p api.StoredPasskey) bool { return p.ID == id })
	if i < 0 {
		return nil, api.Errorf(api.CodeNotFound, "passkey %.40q does not exist", id)
	}
	gone := shownPasskey(c.Passkeys[i])
	c.Passkeys = slices.Delete(c.Passkeys, i, i+1)
	if !hasFactor(c) {
		required, err := a.requiresTotp(ctx, api.Grant{Role: me.Role, Organization: me.Org})
		if err != nil {
			return nil, err
		}
		if required {
			return nil, api.Errorf(api.CodeState, "a second factor is required for your account, and this passkey is your only one").WithHint("add another passkey or set up one-time codes first")
		}
		c.RecoveryCodes = nil
	}
	if err := a.confirmed(ctx, &u, "password", in.Password); err != nil {
		return nil, err
	}
	return &gone, a.WriteCredentials(ctx, u, c)
}

// BeginPasskeyLogin returns a challenge that any passkey can answer.
func (a *Authenticator) BeginPasskeyLogin(ctx context.Context) (*api.PasskeyChallenge, error) {
	if !a.flows.take(addressOf(Request(ctx)), a.opts.Now()) {
		return nil, errManyPasskeys()
	}
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	c, err := site.BeginLogin()
	if err != nil {
		return nil, fmt.Errorf("begin a login by passkey: %w", err)
	}
	return a.sealedChallenge(ctx, c, passkeyFlow{Use: passkeyLoginUse})
}

// FinishPasskeyLogin begins a session with the response of a passkey.
func (a *Authenticator) FinishPasskeyLogin(ctx context.Context, in *api.PasskeyLogin) (*api.Session, error) {
	now, address := a.opts.Now().UTC(), addressOf(Request(ctx))
	if !a.flows.take(address, now) {
		return nil, errManyPasskeys()
	}
	if in.Flow == "" || len(in.Credential) == 0 {
		return nil, api.Errorf(api.CodeInvalid, "flow and credential are required").At("flow").WithHint("flow is returned when the sign-in is started; credential is the browser's answer")
	}
	answer, err := passkey.ParseAssertion(in.Credential)
	if err != nil {
		return nil, a.badPasskey(address, "", err)
	}
	kind, _ := api.KindOfID(answer.User)
	if kind != api.KindUser {
		return nil, a.badPasskey(address, "", errors.New("the user handle is not a user's"))
	}
	u, err := stored[api.User](ctx, a, api.KindUser, answer.User)
	if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
		return nil, err
	}
	c := Credentials(u)
	// An account without a password is not set up yet, or was reset.
	if err != nil || u.Spec.Disabled || c.PasswordHash == "" {
		return nil, a.badPasskey(address, answer.User, cmp.Or(err, errors.New("the user is disabled or has no password")))
	}
	if err := a.answered(ctx, u, &c, in.Flow, answer, now); err != nil {
		return nil, err
	}
	g, err := a.Chosen(ctx, u, in.Organization, in.Project)
	if err != nil {
		return nil, err
	}
	s, err := a.begin(by(ctx, u), u, c, g, address, now)
	if api.CodeOf(err) == api.CodeConflict && err != nil {
		return nil, api.Errorf(api.CodeConflict, "another sign-in of this user took place at the same time").WithHint("try again")
	}
	return &s, err
}

// answered checks a passkey's response for a user, and records in the credentials that
// the challenge and the passkey were used.
func (a *Authenticator) answered(ctx context.Context, u api.User, c *api.UserCredentials, sealed string, answer passkey.Assertion, now time.Time) error {
	site, err := a.site(ctx)
	if err != nil {
		return err
	}
	f, err := a.openPasskeyFlow(ctx, sealed, passkeyLoginUse)
	if err != nil {
		return err
	}
	if err := spend(c, f.ID, f.Until, now, errPasskeyOver()); err != nil {
		return err
	}
	key, err := site.FinishLogin(ownerOf(u, *c, site), f.Session, answer)
	if err != nil {
		return a.badPasskey(addressOf(Request(ctx)), u.Meta.ID, err)
	}
	i := slices.IndexFunc(c.Passkeys, func(p api.StoredPasskey) bool { return p.Site == site.Name && slices.Equal(p.CredentialID, key.ID) })
	if i < 0 { // the library found it in this list
		return errPasskey()
	}
	at := now.Truncate(time.Second)
	c.Passkeys[i].Flags, c.Passkeys[i].SignCount, c.Passkeys[i].UsedAt = int32(key.Flags), int64(key.SignCount), &at
	return nil
}

// badPasskey logs a refused response. The error is the same whether the user exists or
// not.
func (a *Authenticator) badPasskey(address, user string, err error) error {
	a.opts.Log.Warn("sign-in with passkey refused", "user", user, "address", address, "counter-went-back", errors.Is(err, passkey.ErrCounter), "error", clipped(err))
	return errPasskey()
}

// maxLoggedError limits the logged part of an error that repeats input from an
// unauthenticated client.
const maxLoggedError = 300 // bytes

func clipped(err error) string { return fmt.Sprintf("%.*s", maxLoggedError, err.Error()) }

// passkeyFactor checks a passkey as second factor, after the password.
func (a *Authenticator) passkeyFactor(ctx context.Context, u api.User, c *api.UserCredentials, in api.PasskeyAnswer, now time.Time) error {
	answer, err := passkey.ParseAssertion(in.Credential)
	if err == nil && answer.User != u.Meta.ID {
		err = errors.New("the passkey is another user's")
	}
	if err != nil {
		return a.badPasskey(addressOf(Request(ctx)), u.Meta.ID, err)
	}
	return a.answered(ctx, u, c, in.Flow, answer, now)
}

// hasFactor reports whether a user has a second factor.
func hasFactor(c api.UserCredentials) bool { return c.TotpSecret != "" || len(c.Passkeys) > 0 }
