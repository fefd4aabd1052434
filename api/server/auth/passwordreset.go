package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// resetLife and invitationLife are how long a link that was sent by e-mail is
	// valid.
	resetLife      = time.Hour
	invitationLife = 3 * 24 * time.Hour

	maxPlaceBytes = 256
)

// errNoMail is the error of operations that need mail.
func errNoMail() error {
	return api.Errorf(api.CodeState, "the cluster sends no mail").WithHint("ask your administrator, who can create a link")
}

// MailSettings returns the stored settings; revision 0 means that they were never
// changed.
func (a *Authenticator) MailSettings(ctx context.Context) (api.StoredMailSettings, error) {
	return api.Settings[api.StoredMailSettings](ctx, a.opts.Store, api.KindMailSettings, api.MailSettingsID)
}

// MailStatus returns the status of sending mail and of reading returned mail.
func (a *Authenticator) MailStatus(ctx context.Context) (api.MailStatus, error) {
	sending, err := api.Settings[api.StoredMailSettings](ctx, a.opts.Store, api.KindMailSettings, api.MailStatusID)
	if err != nil {
		return api.MailStatus{}, err
	}
	bounces, err := api.Settings[api.StoredMailSettings](ctx, a.opts.Store, api.KindMailSettings, api.MailBouncesID)
	st := sending.Status
	st.Bounces = bounces.Status.Bounces
	return st, err
}

// RequestPasswordReset queues a message with a link. The message and the response are
// the same whether the user exists or not: the leader drops messages without a user. A
// request beyond an account's limit queues nothing and gets the same response.
func (a *Authenticator) RequestPasswordReset(ctx context.Context, in *api.PasswordResetRequest) (*api.PasswordResetRequest, error) {
	email, now := api.Login(in.Email), a.opts.Now().UTC()
	if err := api.ValidateLogin(email); err != nil {
		return nil, api.Errorf(api.CodeInvalid, "must be an e-mail address").At("email").WithHint("e.g. ann@example.com")
	}
	if len(in.Organization) > maxPlaceBytes {
		return nil, api.Errorf(api.CodeInvalid, "must have at most %d bytes", maxPlaceBytes).At("organization")
	}
	m, err := a.MailSettings(ctx)
	if err != nil {
		return nil, err
	}
	if !m.Spec.Enabled {
		return nil, errNoMail()
	}
	if !a.resetsFrom.take(addressOf(Request(ctx)), now) {
		return nil, errSlow
	}
	place, err := a.loginPlace(ctx, in.Organization)
	if err != nil {
		return nil, err
	}
	out := &api.PasswordResetRequest{Email: in.Email, Organization: in.Organization}
	if !a.resetsOf.take(strings.TrimSpace(email+" "+place), now) {
		return out, nil
	}
	u, err := a.UserFor(ctx, email, place)
	if err != nil {
		return nil, err
	}
	if in.Organization != "" && place == "" || u.Spec.Disabled || !signsInByPassword(u) {
		u = api.User{}
	}
	u.Meta.Name = email
	_, err = a.mailLink(ctx, u, api.MailMessageSpec{Type: api.MailTypePasswordReset, Language: Spoken(ctx)}, resetLife)
	if code := api.CodeOf(err); err != nil && (code == api.CodeConflict || code == api.CodeNotFound) {
		err = nil // the user is being changed; reporting that would reveal that the user exists
	}
	return out, err
}

// signsInByPassword reports whether the user has a password, or was given a link to set
// one: a link by e-mail must not bypass an identity provider.
func signsInByPassword(u api.User) bool {
	c := Credentials(u)
	return c.PasswordHash != "" || c.LinkHash != "" || c.MailedHash != ""
}

// Invite sends a user a link that sets a password.
func (a *Authenticator) Invite(ctx context.Context, u api.User) (api.MailMessage, error) {
	now := a.opts.Now().UTC()
	m, err := a.MailSettings(ctx)
	switch {
	case err != nil:
		return api.MailMessage{}, err
	case !m.Spec.Enabled:
		return api.MailMessage{}, api.Errorf(api.CodeState, "the cluster sends no mail").WithHint("an operator enables it in the mail settings")
	case u.Spec.Disabled:
		return api.MailMessage{}, api.Errorf(api.CodeState, "user %s is disabled", u.Meta.Name).WithHint("enable it first")
	case !a.invitations.take(u.Meta.ID, now):
		return api.MailMessage{}, api.Errorf(api.CodeRateLimited, "user %s was sent several invitations", u.Meta.Name).WithHint("wait ten minutes")
	}
	// Any address can be given to a user, so the number of invitations is limited.
	if me := Caller(ctx); me.Role != api.RoleOperator && !a.invitationsBy.take(me.Org, now) {
		return api.MailMessage{}, api.Errorf(api.CodeRateLimited, "your organization has sent many invitations").WithHint("wait a minute")
	}
	return a.mailLink(ctx, u, api.MailMessageSpec{Type: api.MailTypeInvitation, Language: u.Spec.Language}, invitationLife)
}

// mailLink queues a message to a user with a token that sets a password; the token's
// hash is stored in the same batch. A message is queued even for a user without an ID,
// who does not exist.
func (a *Authenticator) mailLink(ctx context.Context, u api.User, s api.MailMessageSpec, life time.Duration) (api.MailMessage, error) {
	now, id := a.opts.Now().UTC(), api.RandomID(api.KindMailMessage)
	end := now.Add(life).Truncate(time.Second)
	token, hash := NewToken(u.Meta.ID)
	sealed, err := a.Sealed(ctx, token)
	if err != nil {
		return api.MailMessage{}, err
	}
	s.To, s.User, s.Organization, s.Secret, s.ExpiresAt = u.Meta.Name, u.Meta.ID, u.Meta.Organization, sealed, &end
	cmds := []api.Command{api.QueueMail(id, s)}
	if u.Meta.ID != "" {
		c := Credentials(u)
		c.MailedHash, c.MailedTo, c.MailedExpiresAt = hash, u.Meta.Name, &end
		u.Spec.Credentials = &c
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision, Labels: u.Meta.Labels, Data: api.Encode(u.Spec)})
	}
	out, err := a.opts.Store.Apply(ctx, api.Batch{At: now, Commands: cmds})
	if err != nil {
		return api.MailMessage{}, fmt.Errorf("queue the mail with a link for user %s: %w", u.Meta.ID, err)
	}
	return api.Decode[api.MailMessage](out[0])
}

// holdsLink reports whether a secret belongs to a link that has not expired.
func holdsLink(secret []byte, hash string, end *time.Time, now time.Time) bool {
	return hash != "" && end != nil && now.Before(*end) && sameHash(secret, hash)
}

// keepProved is Keep for a user who has proved to own the address, which is then
// verified unless another user has verified it before.
func (a *Authenticator) keepProved(ctx context.Context, u api.User, c api.UserCredentials, with ...api.Command) error {
	u.Spec.Credentials = &c
	suppression, there, err := api.Find[api.MailSuppression](ctx, a.opts.Store, api.KindMailSuppression, api.MailSuppressionIDOf(u.Meta.Name))
	if err != nil {
		return err
	}
	if there { // mail has arrived
		with = append(with, api.Command{Op: api.OpDelete, Kind: api.KindMailSuppression, ID: suppression.Meta.ID, Expect: api.AnyRevision})
	}
	_, err = a.opts.Store.Apply(ctx, api.Batch{At: a.opts.Now().UTC(), Commands: append([]api.Command{{
		Op: api.OpPutSpec, Kind: api.KindUser, ID: u.Meta.ID, Expect: u.Meta.Revision, Labels: u.Meta.Labels,
		Claims: api.LoginClaim(u.Meta.Name), Data: api.Encode(u.Spec)}}, with...)})
	if code := api.CodeOf(err); err != nil && (code == api.CodeConflict || code == api.CodeExists) {
		return a.WriteCredentials(ctx, u, c, with...)
	}
	if err != nil {
		return fmt.Errorf("write the credentials of user %s: %w", u.Meta.ID, err)
	}
	return nil
}

// Spoken returns the first language of the request's Accept-Language header if mail is
// available in it; otherwise "".
func Spoken(ctx context.Context) api.MailLanguage {
	first, _, _ := strings.Cut(Request(ctx).Header.Get("Accept-Language"), ",")
	tag, _, _ := strings.Cut(strings.TrimSpace(first), "-")
	switch tag, _, _ = strings.Cut(tag, ";"); strings.ToLower(tag) {
	case "en":
		return api.MailEnglish
	case "de":
		return api.MailGerman
	}
	return ""
}
