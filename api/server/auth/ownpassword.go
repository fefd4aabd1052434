package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

const (
	// maxSecretText is the longest password that is looked at.
	maxSecretText = 256
	recoveryCodes = 10
)

// ChangePassword of the caller's: all sessions end, and a new one begins.
func (a *Authenticator) ChangePassword(ctx context.Context, in *api.PasswordChange) (*api.Session, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	if err := api.ValidatePassword("new", in.New, u.Meta.Name); err != nil {
		return nil, err
	}
	if err := a.confirmed(ctx, &u, "old", in.Old); err != nil {
		return nil, err
	}
	c, me := Credentials(u), Caller(ctx)
	if c.PasswordHash, err = a.opts.Passwords.Hash(ctx, in.New); err != nil {
		return nil, err
	}
	c.Epoch++
	old, err := a.SessionsOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return nil, err
	}
	begin, s := a.newSession(u, api.Grant{Role: me.Role, Organization: me.Org, Project: me.Project}, c.Epoch, addressOf(Request(ctx)))
	return &s, a.Keep(ctx, u, c, append(EndAll(old), begin)...)
}

// confirmed asks for the password once more, and then for what else it is given;
// guessing either is slowed down as at the login.
func (a *Authenticator) confirmed(ctx context.Context, u *api.User, field, password string, and ...func() error) error {
	now := a.opts.Now().UTC()
	try, err := a.tried(ctx, u, u.Meta.Name, addressOf(Request(ctx)), now)
	if err != nil {
		return err
	}
	if len(password) > maxSecretText {
		password = ""
	}
	ok, err := a.opts.Passwords.Check(try.turn(ctx), Credentials(*u).PasswordHash, password)
	if err == nil && !ok {
		err = api.Errorf(api.CodeForbidden, "the password is wrong").At(field)
	}
	for _, ask := range and {
		if err == nil {
			err = ask()
		}
	}
	if err == nil {
		a.forgive(try, now)
	}
	return err
}

// SetPassword with the token of a new or reset user, once. Who has one that was sent
// by e-mail has proved that the address is his.
func (a *Authenticator) SetPassword(ctx context.Context, in *api.PasswordToken) (*api.PasswordSet, error) {
	now := a.opts.Now()
	refused := api.Errorf(api.CodeInvalid, "the token is not valid").At("token").WithHint("it may have been used or have expired: your administrator can create another")
	id, secret, ok := parseToken(in.Token)
	if kind, _ := api.KindOfID(id); !ok || kind != api.KindUser {
		return nil, a.refused(Request(ctx), in.Token, refused, now)
	}
	u, err := stored[api.User](ctx, a, api.KindUser, id)
	if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
		return nil, err
	}
	c := Credentials(u)
	given, mailed := holdsLink(secret, c.LinkHash, c.LinkExpiresAt, now), holdsLink(secret, c.MailedHash, c.MailedExpiresAt, now) && c.MailedTo == u.Meta.Name
	if err != nil || !given && !mailed || u.Spec.Disabled {
		return nil, a.refused(Request(ctx), in.Token, refused, now)
	}
	if err := api.ValidatePassword("password", in.Password, u.Meta.Name); err != nil {
		return nil, err
	}
	if c.PasswordHash, err = a.opts.Passwords.Hash(ctx, in.Password); err != nil {
		return nil, err
	}
	c.LinkHash, c.LinkExpiresAt, c.Epoch = "", nil, c.Epoch+1
	c.MailedHash, c.MailedTo, c.MailedExpiresAt = "", "", nil
	keep := a.Keep
	if mailed {
		keep = a.keepProved
	}
	return &api.PasswordSet{Email: u.Meta.Name}, keep(by(ctx, u), u, c)
}

// BeginTOTP makes a secret, which counts once a code of it was seen.
func (a *Authenticator) BeginTOTP(ctx context.Context) (*api.TOTPSecret, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	c := Credentials(u)
	if c.TotpSecret != "" {
		return nil, api.Errorf(api.CodeState, "one-time codes are already enabled").WithHint("disable them first")
	}
	secret := totp.NewSecret()
	if c.TotpPending, err = a.Sealed(ctx, secret); err != nil {
		return nil, err
	}
	return &api.TOTPSecret{Secret: secret, URI: totp.URI("Basalt", u.Meta.Name, secret)}, a.Keep(ctx, u, c)
}

// ConfirmTOTP turns one-time codes on.
func (a *Authenticator) ConfirmTOTP(ctx context.Context, in *api.TOTPCode) (*api.RecoveryCodes, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	c := Credentials(u)
	if c.TotpPending == "" {
		return nil, api.Errorf(api.CodeState, "there is no secret to confirm").WithHint("create one with POST /v1/totp")
	}
	secret, err := a.unsealed(ctx, c.TotpPending)
	if err != nil {
		return nil, err
	}
	step, ok, err := totp.Check(secret, in.Code, a.opts.Now(), u.Status.TotpStep)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, api.Errorf(api.CodeInvalid, "the code is wrong").At("code").WithHint("check the clocks of this machine and of your authenticator")
	}
	c.TotpSecret, c.TotpPending = c.TotpPending, ""
	var plain []string
	plain, c.RecoveryCodes = newRecoveryCodes()
	u.Status.TotpStep = step
	note := api.Command{Op: api.OpReport, Kind: api.KindUser, ID: u.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(u.Status)}
	return &api.RecoveryCodes{Codes: plain}, a.Keep(ctx, u, c, note)
}

// DisableTOTP turns them off, with the password and a code.
func (a *Authenticator) DisableTOTP(ctx context.Context, in *api.TOTPDisable) (*api.PasswordSet, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	c, me := Credentials(u), Caller(ctx)
	if c.TotpSecret == "" {
		return nil, api.Errorf(api.CodeState, "one-time codes are already disabled")
	}
	required, err := a.requiresTotp(ctx, api.Grant{Role: me.Role, Organization: me.Org})
	if err != nil {
		return nil, err
	}
	if required && len(c.Passkeys) == 0 {
		return nil, api.Errorf(api.CodeState, "one-time codes are required for your account").WithHint("to change the authenticator, ask your administrator to reset them")
	}
	err = a.confirmed(ctx, &u, "password", in.Password, func() error {
		err := a.secondFactor(ctx, &u, &c, in.Code, a.opts.Now().UTC())
		var e *api.Error
		if errors.As(err, &e) && e.Code == api.CodeUnauthenticated { // the session is good
			err = api.Errorf(api.CodeForbidden, "%s", e.Message).At("code").WithHint("%s", e.Hint)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.TotpSecret, c.TotpPending = "", ""; !hasFactor(c) {
		c.RecoveryCodes = nil
	}
	note := api.Command{Op: api.OpReport, Kind: api.KindUser, ID: u.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(u.Status)}
	return &api.PasswordSet{Email: u.Meta.Name}, a.Keep(ctx, u, c, note)
}

// newRecoveryCodes returns codes to show once, and what is kept of them.
func newRecoveryCodes() (plain, hashes []string) {
	for range recoveryCodes {
		code := strings.ToLower(rand.Text()[:16]) // 80 bits
		code = code[:4] + "-" + code[4:8] + "-" + code[8:12] + "-" + code[12:]
		plain, hashes = append(plain, code), append(hashes, recoveryHash(code))
	}
	return plain, hashes
}

// recoveryHash is what is kept of a recovery code: it is random, so that a slow
// hash would gain nothing.
func recoveryHash(code string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(code), "-", ""))))
	return hex.EncodeToString(sum[:])
}

// Sealed and unsealed keep secrets as backup targets' are kept.
func (a *Authenticator) Sealed(ctx context.Context, secret string) (string, error) {
	if a.opts.Secrets == nil {
		return secret, nil
	}
	return a.opts.Secrets.Seal(ctx, secret)
}

func (a *Authenticator) unsealed(ctx context.Context, sealed string) (string, error) {
	if a.opts.Secrets == nil {
		return sealed, nil
	}
	return a.opts.Secrets.Open(ctx, sealed)
}
