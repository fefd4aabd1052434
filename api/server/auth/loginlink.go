package auth

import (
	"cmp"
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// loginLinkLife is how long a sign-in token is valid: as long as a browser needs to
// follow a redirect.
const loginLinkLife = time.Minute

// loginLink is a stored object: a session that has not begun. It is deleted in the
// batch that begins the session, so it can be used only once.
type loginLink struct {
	Kind api.Kind
	Meta api.Meta
	Spec loginLinkSpec
}

type loginLinkSpec struct {
	User      api.UserID  `json:"user"`
	Grant     api.Grant   `json:"grant"`
	Group     api.GroupID `json:"group,omitempty"` // that gives the grant
	Epoch     int64       `json:"epoch"`           // a password change invalidates it
	Hash      string      `json:"hash"`
	ExpiresAt time.Time   `json:"expiresAt"`
}

// NewLoginLink creates a link for a user's grant, and deletes expired ones.
func (a *Authenticator) NewLoginLink(ctx context.Context, u api.User, g Held) (api.LoginLink, error) {
	has, err := a.Has(ctx, u, g)
	if err != nil {
		return api.LoginLink{}, err
	}
	if u.Spec.Disabled || !has {
		return api.LoginLink{}, api.Errorf(api.CodeState, "%s may not sign in there", u.Meta.Name).WithHint("the user is disabled, or the grant was removed")
	}
	now, id := a.opts.Now().UTC(), api.RandomID(api.KindLoginLink)
	token, hash := NewToken(id)
	end := now.Add(loginLinkLife)
	old, err := pages.All[loginLink](ctx, a.opts.Store, api.ListQuery{Kind: api.KindLoginLink})
	if err != nil {
		return api.LoginLink{}, err
	}
	spec := loginLinkSpec{User: api.UserID(u.Meta.ID), Grant: g.Grant, Group: g.Group, Epoch: Credentials(u).Epoch, Hash: hash, ExpiresAt: end}
	cmds := []api.Command{{Op: api.OpPutSpec, Kind: api.KindLoginLink, ID: id, Organization: g.Grant.Organization, Data: api.Encode(spec)}}
	for _, l := range old {
		if now.After(l.Spec.ExpiresAt) && len(cmds) < 100 {
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindLoginLink, ID: l.Meta.ID, Expect: l.Meta.Revision})
		}
	}
	return api.LoginLink{Token: token, ExpiresAt: end}, a.applied(ctx, cmds...)
}

// LoginWithLink begins the session of a link, which is then invalid.
func (a *Authenticator) LoginWithLink(ctx context.Context, in *api.LoginToken) (*api.Session, error) {
	address, now := addressOf(Request(ctx)), a.opts.Now().UTC()
	refused := api.Errorf(api.CodeInvalid, "the link is not valid").At("token").WithHint("a link is valid once, for one minute: request a new one")
	id, secret, ok := parseToken(in.Token)
	if kind, _ := api.KindOfID(id); !ok || kind != api.KindLoginLink {
		return nil, a.refused(Request(ctx), in.Token, refused, now)
	}
	link, err := stored[loginLink](ctx, a, api.KindLoginLink, id)
	if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
		return nil, err
	}
	if err != nil || !sameHash(secret, link.Spec.Hash) || !now.Before(link.Spec.ExpiresAt) {
		return nil, a.refused(Request(ctx), in.Token, refused, now)
	}
	u, err := stored[api.User](ctx, a, api.KindUser, string(link.Spec.User))
	if err != nil && api.CodeOf(err) != api.CodeUnauthenticated {
		return nil, err
	}
	held := Held{link.Spec.Grant, link.Spec.Group}
	if err != nil || u.Spec.Disabled || Credentials(u).Epoch != link.Spec.Epoch {
		return nil, refused
	}
	if has, err := a.Has(ctx, u, held); err != nil || !has {
		return nil, cmp.Or(err, error(refused))
	}
	if err := a.admitted(ctx, link.Spec.Grant); err != nil {
		return nil, err
	}
	begin, s := a.newSession(u, held, link.Spec.Epoch, address)
	old, err := a.SessionsOf(ctx, link.Spec.User)
	if err != nil {
		return nil, err
	}
	over, err := a.surplus(ctx, old, u, now)
	if err != nil {
		return nil, err
	}
	used := api.Command{Op: api.OpDelete, Kind: api.KindLoginLink, ID: id, Expect: link.Meta.Revision}
	cmds := append([]api.Command{used, begin}, EndAll(over)...)
	err = a.applied(by(ctx, u), cmds...)
	if c := api.CodeOf(err); err != nil && (c == api.CodeConflict || c == api.CodeNotFound) {
		return nil, refused // a concurrent request used the same link
	}
	return &s, err
}
