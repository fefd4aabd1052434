package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

type identityKey struct{}

// WithIdentity records in the context who asks.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns who asks, if the context says so.
func IdentityOf(ctx context.Context) (Identity, bool) {
	id, known := ctx.Value(identityKey{}).(Identity)
	return id, known
}

// WithRequest records in the context which operation a request is for.
func WithRequest(ctx context.Context, operation string, r *http.Request) context.Context {
	return context.WithValue(context.WithValue(ctx, requestKey{}, r), operationKey{}, operation)
}

// OperationOf returns the operation that a request is for; empty: the context is of none.
func OperationOf(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}

type requestKey struct{}

// Request is the HTTP request, for the operations that leave HTTP or stream.
func Request(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

// Identify returns whom a request's token stands for; CodeUnauthenticated: nobody.
func (a *Authenticator) Identify(ctx context.Context, r *http.Request) (Identity, error) {
	now := a.opts.Now()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return Identity{}, api.Errorf(api.CodeUnauthenticated, "an API key is required").WithHint("Authorization: Bearer bslt_…")
	}
	id, err := a.authenticate(ctx, token, now)
	if err != nil {
		if api.CodeOf(err) == api.CodeUnauthenticated {
			err = a.refused(r, token, err, now)
		}
		return Identity{}, err
	}
	if !a.keys.take(id.ID, now) {
		return Identity{}, errSlow
	}
	a.touch(ctx, id, now)
	return id, nil
}

type operationKey struct{}

// by records in the audit trail that a user did it, who has no session yet.
func by(ctx context.Context, u api.User) context.Context {
	return WithIdentity(ctx, Identity{ID: u.Meta.ID, Name: u.Meta.Name})
}

// touchEvery is how often the use of a key or session is written down.
const touchEvery = time.Hour

// touch notes that a key or session is used, at most once an hour. It is not
// worth failing a request for, or much waiting.
func (a *Authenticator) touch(ctx context.Context, id Identity, now time.Time) {
	if id.usedAt != nil && now.Sub(*id.usedAt) < touchEvery || isStale(ctx) {
		return
	}
	if at, ok := a.touched.Load(id.ID); ok && now.Sub(at.(time.Time)) < touchEvery/60 {
		return
	}
	a.touched.Store(id.ID, now)
	at := now.UTC().Truncate(time.Second)
	var status any = api.APIKeyStatus{LastUsedAt: &at}
	if id.kind == api.KindSession {
		status = api.SessionStatus{UsedAt: &at}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := a.opts.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: []api.Command{
		{Op: api.OpReport, Kind: id.kind, ID: id.ID, Expect: api.AnyRevision, Data: api.Encode(status)}}})
	if err != nil {
		a.opts.Log.Debug("update last use of API key failed", "id", id.ID, "error", err)
	}
}

type staleKey struct{}

// WithStale records in the context that the request asked for what this node knows.
func WithStale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// isStale reports whether the request asked for what this node knows: it may be
// cut off, and then a write only waits.
func isStale(ctx context.Context) bool { return ctx.Value(staleKey{}) != nil }

// stored is an object that a token leads to; none is errRefused.
func stored[T any](ctx context.Context, a *Authenticator, kind api.Kind, id string) (T, error) {
	var none T
	o, err := a.opts.Store.Get(ctx, kind, id)
	if err != nil {
		if api.CodeOf(err) == api.CodeNotFound {
			err = errRefused
		}
		return none, err
	}
	return api.Decode[T](o)
}

// authenticate finds whom a token stands for. Every failure that is the
// caller's is the same error.
func (a *Authenticator) authenticate(ctx context.Context, token string, now time.Time) (Identity, error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return Identity{}, errRefused
	}
	return a.identity(ctx, id, func(hash string) bool { return sameHash(secret, hash) }, now)
}

// Resume returns whom a session or an API key stands for whose token was shown before;
// CodeUnauthenticated: nobody any more.
func (a *Authenticator) Resume(ctx context.Context, id string) (Identity, error) {
	return a.identity(ctx, id, func(string) bool { return true }, a.opts.Now())
}

// identity is whom a session or an API key stands for, if what was shown proves it.
func (a *Authenticator) identity(ctx context.Context, id string, proves func(hash string) bool, now time.Time) (Identity, error) {
	switch kind, _ := api.KindOfID(id); kind {
	case api.KindAPIKey:
		return a.keyIdentity(ctx, id, proves, now)
	case api.KindSession:
		return a.sessionIdentity(ctx, id, proves, now)
	}
	return Identity{}, errRefused
}

// keyIdentity is whom an API key stands for.
func (a *Authenticator) keyIdentity(ctx context.Context, id string, proves func(hash string) bool, now time.Time) (Identity, error) {
	key, err := stored[api.APIKey](ctx, a, api.KindAPIKey, id)
	if err != nil {
		return Identity{}, err
	}
	end := key.Spec.ExpiresAt
	good := proves(key.Spec.Hash)
	if old := key.Spec.OldExpiresAt; !good && old != nil && proves(key.Spec.OldHash) {
		if good = true; end == nil || old.Before(*end) {
			end = old
		}
	}
	if !good || end != nil && !now.Before(*end) || key.Meta.DeletedAt != nil {
		return Identity{}, errRefused
	}
	spec := string(api.Encode(key.Spec))
	return Identity{
		ID: id, kind: api.KindAPIKey, Name: key.Meta.Name, Role: key.Spec.Role, Org: key.Meta.Organization, Project: key.Meta.Project,
		scopes: key.Spec.Scopes, networks: key.Spec.Networks, ExpiresAt: end, usedAt: key.Status.LastUsedAt, ParentOf: a.opts.ParentIn(ctx), pays: a.opts.PaysIn(ctx),
		Ended: func(e api.Event) bool {
			if e.Object.Kind != api.KindAPIKey || e.Object.Meta.ID != id {
				return false
			}
			now, err := api.Decode[api.APIKey](e.Object)
			// Whatever was changed of it: who still may begins again.
			return err != nil || e.Type == api.EventRemove || now.Meta.DeletedAt != nil || string(api.Encode(now.Spec)) != spec
		},
	}, nil
}

// Caller is who asks. It panics without one, so that an operation that slipped past
// the guard cannot act.
func Caller(ctx context.Context) Identity { return ctx.Value(identityKey{}).(Identity) }
