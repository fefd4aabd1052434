package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

type identityKey struct{}

// withIdentity says in the context who asks.
func withIdentity(ctx context.Context, id identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// identityOf returns who asks, if the context says so.
func identityOf(ctx context.Context) (identity, bool) {
	id, known := ctx.Value(identityKey{}).(identity)
	return id, known
}

// withRequest says in the context which operation a request is for.
func withRequest(ctx context.Context, operation string, r *http.Request) context.Context {
	return context.WithValue(context.WithValue(ctx, requestKey{}, r), operationKey{}, operation)
}

// operationOf returns the operation that a request is for; empty: the context is of none.
func operationOf(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}

type requestKey struct{}

// request is the HTTP request, for the operations that leave HTTP or stream.
func request(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

func (a *authenticator) identify(ctx context.Context, r *http.Request) (identity, error) {
	now := a.opts.Now()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || !strings.EqualFold(scheme, "Bearer") {
		return identity{}, api.Errorf(api.CodeUnauthenticated, "an API key is needed").WithHint("Authorization: Bearer bslt_…")
	}
	id, err := a.authenticate(ctx, token, now)
	if err != nil {
		if api.CodeOf(err) == api.CodeUnauthenticated {
			err = a.refused(r, token, err, now)
		}
		return identity{}, err
	}
	if !a.keys.take(id.id, now) {
		return identity{}, errSlow
	}
	a.touch(ctx, id, now)
	return id, nil
}

type operationKey struct{}

// by says in the audit trail that a user did it, who has no session yet.
func by(ctx context.Context, u api.User) context.Context {
	return withIdentity(ctx, identity{id: u.Meta.ID, name: u.Meta.Name})
}

// touchEvery is how often the use of a key or session is written down.
const touchEvery = time.Hour

// touch notes that a key or session is used, at most once an hour. It is not
// worth failing a request for, or much waiting.
func (a *authenticator) touch(ctx context.Context, id identity, now time.Time) {
	if id.usedAt != nil && now.Sub(*id.usedAt) < touchEvery || isStale(ctx) {
		return
	}
	if at, ok := a.touched.Load(id.id); ok && now.Sub(at.(time.Time)) < touchEvery/60 {
		return
	}
	a.touched.Store(id.id, now)
	at := now.UTC().Truncate(time.Second)
	var status any = api.APIKeyStatus{LastUsedAt: &at}
	if id.kind == api.KindSession {
		status = api.SessionStatus{UsedAt: &at}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := a.opts.Store.Apply(ctx, api.Batch{At: now.UTC(), Commands: []api.Command{
		{Op: api.OpReport, Kind: id.kind, ID: id.id, Expect: api.AnyRevision, Data: api.Encode(status)}}})
	if err != nil {
		a.opts.Log.Debug("the use of a key was not noted", "id", id.id, "error", err)
	}
}

type staleKey struct{}

// withStale says in the context that the request asked for what this node knows.
func withStale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// isStale reports whether the request asked for what this node knows: it may be
// cut off, and then a write only waits.
func isStale(ctx context.Context) bool { return ctx.Value(staleKey{}) != nil }

// stored is an object that a token leads to; none is errRefused.
func stored[T any](ctx context.Context, a *authenticator, kind api.Kind, id string) (T, error) {
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
func (a *authenticator) authenticate(ctx context.Context, token string, now time.Time) (identity, error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return identity{}, errRefused
	}
	switch kind, _ := api.KindOfID(id); kind {
	case api.KindAPIKey:
		return a.keyIdentity(ctx, id, secret, now)
	case api.KindSession:
		return a.sessionIdentity(ctx, id, secret, now)
	}
	return identity{}, errRefused
}

// keyIdentity is whom an API key stands for.
func (a *authenticator) keyIdentity(ctx context.Context, id string, secret []byte, now time.Time) (identity, error) {
	key, err := stored[api.APIKey](ctx, a, api.KindAPIKey, id)
	if err != nil {
		return identity{}, err
	}
	end := key.Spec.ExpiresAt
	good := sameHash(secret, key.Spec.Hash)
	if old := key.Spec.OldExpiresAt; !good && old != nil && sameHash(secret, key.Spec.OldHash) {
		if good = true; end == nil || old.Before(*end) {
			end = old
		}
	}
	if !good || end != nil && !now.Before(*end) || key.Meta.DeletedAt != nil {
		return identity{}, errRefused
	}
	spec := string(api.Encode(key.Spec))
	return identity{
		id: id, kind: api.KindAPIKey, name: key.Meta.Name, role: key.Spec.Role, org: key.Meta.Organization, project: key.Meta.Project,
		scopes: key.Spec.Scopes, networks: key.Spec.Networks, expiresAt: end, usedAt: key.Status.LastUsedAt, parentOf: a.opts.ParentIn(ctx), pays: a.opts.PaysIn(ctx),
		ended: func(e api.Event) bool {
			if e.Object.Kind != api.KindAPIKey || e.Object.Meta.ID != id {
				return false
			}
			now, err := api.Decode[api.APIKey](e.Object)
			// Whatever was changed of it: who still may begins again.
			return err != nil || e.Type == api.EventRemove || now.Meta.DeletedAt != nil || string(api.Encode(now.Spec)) != spec
		},
	}, nil
}

// callerOf is who asks. It panics without one, so that an operation that slipped past
// the guard cannot act.
func callerOf(ctx context.Context) identity { return ctx.Value(identityKey{}).(identity) }
