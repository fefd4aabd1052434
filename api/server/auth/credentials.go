package auth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Credentials returns a copy of a user's credentials.
func Credentials(u api.User) api.UserCredentials {
	if u.Spec.Credentials == nil {
		return api.UserCredentials{}
	}
	c := *u.Spec.Credentials
	c.RecoveryCodes = slices.Clone(c.RecoveryCodes)
	c.Passkeys = slices.Clone(c.Passkeys)
	return c
}

// WriteCredentials writes a user's credentials at the revision that was read.
func (a *Authenticator) WriteCredentials(ctx context.Context, u api.User, c api.UserCredentials, with ...api.Command) error {
	u.Spec.Credentials = &c
	_, err := a.opts.Store.Apply(ctx, api.Batch{At: a.opts.Now().UTC(), Commands: append([]api.Command{{
		Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision, Labels: u.Meta.Labels, Data: api.Encode(u.Spec),
	}}, with...)})
	if err != nil {
		return fmt.Errorf("write the credentials of user %s: %w", u.Meta.ID, err)
	}
	return nil
}

// linkLife is how long a token that sets a password is valid.
const linkLife = 3 * 24 * time.Hour

// NewPasswordLink returns a token that sets a password, and adds its hash to c.
func NewPasswordLink(id string, c *api.UserCredentials, now time.Time) api.PasswordLink {
	token, hash := NewToken(id)
	end := now.UTC().Add(linkLife).Truncate(time.Second)
	c.LinkHash, c.LinkExpiresAt = hash, &end
	return api.PasswordLink{Token: token, ExpiresAt: end}
}

// applied applies commands in a batch with the current time.
func (a *Authenticator) applied(ctx context.Context, cmds ...api.Command) error {
	_, err := a.opts.Store.Apply(ctx, api.Batch{At: a.opts.Now().UTC(), Commands: cmds})
	if err != nil {
		return fmt.Errorf("write the state of a login: %w", err)
	}
	return nil
}
