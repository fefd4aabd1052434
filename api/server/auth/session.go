package auth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// Limits of a session's lifetime, and of a user's sessions: the oldest end first.
const (
	sessionLife = 7 * 24 * time.Hour
	sessionIdle = 12 * time.Hour
	maxSessions = 20
)

// lives reports whether a user's session is valid if the user still has its grant: it
// belongs to the current epoch, which changing or resetting the password ends.
func lives(s api.Session, u api.User, now time.Time) bool {
	used := s.Meta.CreatedAt
	if s.Status.UsedAt != nil {
		used = *s.Status.UsedAt
	}
	// usedAt is accurate to an hour.
	return now.Before(s.Spec.ExpiresAt) && now.Before(used.Add(sessionIdle+touchEvery)) && s.Meta.DeletedAt == nil &&
		u.Meta.DeletedAt == nil && !u.Spec.Disabled && Credentials(u).Epoch == s.Spec.Epoch
}

// heldBy returns the grant of a session.
func heldBy(s api.Session) Held { return Held{s.Spec.Grant, s.Spec.Group} }

// holds reports whether a user's session is valid. Removing its grant from the user, or
// the user from the group that gives it, ends it at once.
func (a *Authenticator) holds(ctx context.Context, s api.Session, u api.User, now time.Time) (bool, error) {
	if !lives(s, u, now) {
		return false, nil
	}
	return a.Has(ctx, u, heldBy(s))
}

// sessionIdentity returns the identity of a session.
func (a *Authenticator) sessionIdentity(ctx context.Context, id string, proves func(hash string) bool, now time.Time) (Identity, error) {
	session, err := stored[api.Session](ctx, a, api.KindSession, id)
	if err != nil {
		return Identity{}, err
	}
	u, err := stored[api.User](ctx, a, api.KindUser, string(session.Spec.User))
	if err != nil {
		return Identity{}, err
	}
	if !proves(session.Spec.Hash) {
		return Identity{}, errRefused
	}
	if ok, err := a.holds(ctx, session, u, now); err != nil || !ok {
		return Identity{}, cmp.Or(err, error(errRefused))
	}
	g, end := session.Spec.Grant, session.Spec.ExpiresAt
	me := Identity{ID: id, Name: u.Meta.Name, User: session.Spec.User, Role: g.Role, Org: g.Organization, Project: g.Project, group: session.Spec.Group,
		ExpiresAt: &end, usedAt: session.Status.UsedAt, kind: api.KindSession, ParentOf: a.opts.ParentIn(ctx), pays: a.opts.PaysIn(ctx)}
	if c := Credentials(u); c.PasswordHash != "" && !hasFactor(c) {
		if me.NeedsTotp, err = a.requiresTotp(ctx, g); err != nil {
			return Identity{}, err
		}
	}
	me.Ended = func(e api.Event) bool {
		switch {
		case e.Object.Kind == api.KindSession && e.Object.Meta.ID == id:
			return e.Type == api.EventRemove
		case e.Object.Kind == api.KindUser && e.Object.Meta.ID == string(session.Spec.User):
			now, err := api.Decode[api.User](e.Object)
			if err != nil || e.Type == api.EventRemove || !lives(session, now, session.Meta.CreatedAt) {
				return true
			}
		}
		return heldBy(session).EndsWith(e, session.Spec.User)
	}
	return me, nil
}

// SessionsOf returns a user's sessions, oldest first. The store keeps the user's ID as
// their project, for which it has an index, so that a login need not read all sessions.
func (a *Authenticator) SessionsOf(ctx context.Context, user api.UserID) ([]api.Session, error) {
	sessions, err := pages.All[api.Session](ctx, a.opts.Store, api.ListQuery{Kind: api.KindSession, Project: string(user)})
	slices.SortFunc(sessions, func(a, b api.Session) int { return a.Meta.CreatedAt.Compare(b.Meta.CreatedAt) })
	return sessions, err
}

// EndAll returns the commands that end sessions.
func EndAll(sessions []api.Session) []api.Command {
	var out []api.Command
	for _, s := range sessions {
		out = append(out, api.Command{Op: api.OpDelete, Kind: api.KindSession, ID: s.Meta.ID, Expect: api.AnyRevision})
	}
	return out
}

// newSession returns the command that begins a session, and the session in the form
// that its owner gets.
func (a *Authenticator) newSession(u api.User, g Held, epoch int64, address string) (api.Command, api.Session) {
	id := api.RandomID(api.KindSession)
	token, hash := NewToken(id)
	now := a.opts.Now().UTC()
	s := api.Session{Kind: api.KindSession, Meta: api.Meta{ID: id, CreatedAt: now}, Token: token, Current: true, Spec: api.SessionSpec{
		User: api.UserID(u.Meta.ID), Grant: g.Grant, Group: g.Group, Address: address, Epoch: epoch, Hash: hash, ExpiresAt: now.Add(sessionLife).Truncate(time.Second)}}
	cmd := api.Command{Op: api.OpPutSpec, Kind: api.KindSession, ID: id, Organization: u.Meta.Organization, Project: u.Meta.ID, Data: api.Encode(s.Spec)}
	return cmd, s
}

// Me returns the user of the request's session.
func (a *Authenticator) Me(ctx context.Context) (api.User, error) {
	id := Caller(ctx).User
	if id == "" {
		return api.User{}, api.Errorf(api.CodeState, "an API key has no password and no sessions").WithHint("sign in as a user: basalt login --email …")
	}
	return stored[api.User](ctx, a, api.KindUser, string(id))
}

// ListSessions returns the caller's sessions.
func (a *Authenticator) ListSessions(ctx context.Context) (*api.SessionList, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := a.SessionsOf(ctx, api.UserID(u.Meta.ID))
	out := api.SessionList{Items: []api.Session{}}
	for _, s := range sessions {
		ok, err := a.holds(ctx, s, u, a.opts.Now())
		if err != nil {
			return nil, err
		}
		if ok {
			s.Current = s.Meta.ID == Caller(ctx).ID
			out.Items = append(out.Items, s)
		}
	}
	return &out, err
}

// DeleteSession ends one of the caller's sessions.
func (a *Authenticator) DeleteSession(ctx context.Context, id string) (*api.Session, error) {
	s, err := a.endSession(ctx, id)
	return &s, err
}

// Logout ends the request's session.
func (a *Authenticator) Logout(ctx context.Context) (*api.Session, error) {
	if Caller(ctx).User == "" {
		_, err := a.Me(ctx)
		return nil, err
	}
	s, err := a.endSession(ctx, Caller(ctx).ID)
	return &s, err
}

func (a *Authenticator) endSession(ctx context.Context, id string) (api.Session, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return api.Session{}, err
	}
	o, err := a.opts.Store.Get(ctx, api.KindSession, id)
	if err != nil {
		return api.Session{}, fmt.Errorf("read session %s: %w", id, err)
	}
	s, err := api.Decode[api.Session](o)
	if err != nil {
		return s, err
	}
	if string(s.Spec.User) != u.Meta.ID {
		return api.Session{}, api.Errorf(api.CodeNotFound, "%s %s does not exist", api.KindSession, id)
	}
	_, err = a.opts.Store.Apply(ctx, api.Batch{At: a.opts.Now().UTC(), Commands: EndAll([]api.Session{s})})
	if err != nil {
		return s, fmt.Errorf("end session %s: %w", id, err)
	}
	return s, nil
}
