package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

const (
	// maxSecretText limits the length of a password that is checked, in bytes.
	maxSecretText = 256
	recoveryCodes = 10
)

// ChangePassword changes the caller's password. All sessions end, and a new one begins.
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
		return nil, fmt.Errorf("hash the password of user %s: %w", u.Meta.ID, err)
	}
	c.Epoch++
	old, err := a.SessionsOf(ctx, api.UserID(u.Meta.ID))
	if err != nil {
		return nil, err
	}
	begin, s := a.newSession(u, Held{api.Grant{Role: me.Role, Organization: me.Org, Project: me.Project}, me.group}, c.Epoch, addressOf(Request(ctx)))
	return &s, a.WriteCredentials(ctx, u, c, append(EndAll(old), begin)...)
}

// confirmed checks the current password, and then the given further conditions; guesses
// of either are rate-limited as in Login.
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

// SetPassword sets the password with the token of a new or reset user, which is then
// invalid. A token that was sent by e-mail also verifies the address.
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
		return nil, fmt.Errorf("hash the password of user %s: %w", u.Meta.ID, err)
	}
	c.LinkHash, c.LinkExpiresAt, c.Epoch = "", nil, c.Epoch+1
	c.MailedHash, c.MailedTo, c.MailedExpiresAt = "", "", nil
	speak(ctx, &u)
	keep := a.WriteCredentials
	if mailed {
		keep = a.keepProved
	}
	return &api.PasswordSet{Email: u.Meta.Name}, keep(by(ctx, u), u, c)
}

// BeginTOTP generates a secret, which takes effect once a code of it was confirmed.
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
	return &api.TOTPSecret{Secret: secret, URI: totp.URI("Basalt", u.Meta.Name, secret)}, a.WriteCredentials(ctx, u, c)
}

// ConfirmTOTP enables one-time codes.
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
		return nil, fmt.Errorf("check the one-time password of user %s: %w", u.Meta.ID, err)
	}
	if !ok {
		return nil, api.Errorf(api.CodeInvalid, "the code is wrong").At("code").WithHint("check the clocks of this machine and of your authenticator")
	}
	c.TotpSecret, c.TotpPending = c.TotpPending, ""
	var plain []string
	plain, c.RecoveryCodes = newRecoveryCodes()
	u.Status.TotpStep = step
	note := api.Command{Op: api.OpReport, Kind: api.KindUser, ID: u.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(u.Status)}
	return &api.RecoveryCodes{Codes: plain}, a.WriteCredentials(ctx, u, c, note)
}

// DisableTOTP disables one-time codes; it needs the password and a code.
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
		if errors.As(err, &e) && e.Code == api.CodeUnauthenticated { // the session itself is valid
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
	return &api.PasswordSet{Email: u.Meta.Name}, a.WriteCredentials(ctx, u, c, note)
}

// newRecoveryCodes returns codes to show once, and the hashes to store.
func newRecoveryCodes() (plain, hashes []string) {
	for range recoveryCodes {
		code := strings.ToLower(rand.Text()[:16]) // 80 bits
		code = code[:4] + "-" + code[4:8] + "-" + code[8:12] + "-" + code[12:]
		plain, hashes = append(plain, code), append(hashes, recoveryHash(code))
	}
	return plain, hashes
}

// recoveryHash returns the stored form of a recovery code. Since codes are random, a
// slow hash would not be safer.
func recoveryHash(code string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(code), "-", ""))))
	return hex.EncodeToString(sum[:])
}

// Sealed returns the stored form of a secret, sealed in the same way as those of backup
// targets.
func (a *Authenticator) Sealed(ctx context.Context, secret string) (string, error) {
	if a.opts.Secrets == nil {
		return secret, nil
	}
	sealed, err := a.opts.Secrets.Seal(ctx, secret)
	if err != nil {
		return "", fmt.Errorf("use the keys of the cluster: %w", err)
	}
	return sealed, nil
}

func (a *Authenticator) unsealed(ctx context.Context, sealed string) (string, error) {
	if a.opts.Secrets == nil {
		return sealed, nil
	}
	secret, err := a.opts.Secrets.Open(ctx, sealed)
	if err != nil {
		return "", fmt.Errorf("use the keys of the cluster: %w", err)
	}
	return secret, nil
}
