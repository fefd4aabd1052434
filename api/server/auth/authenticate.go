package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

type identityKey struct{}

// WithIdentity returns a context with the caller's identity.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// IdentityOf returns the caller's identity, if the context has one.
func IdentityOf(ctx context.Context) (Identity, bool) {
	id, known := ctx.Value(identityKey{}).(Identity)
	return id, known
}

// WithRequest returns a context with a request and its operation.
func WithRequest(ctx context.Context, operation string, r *http.Request) context.Context {
	return context.WithValue(context.WithValue(ctx, requestKey{}, r), operationKey{}, operation)
}

// OperationOf returns the operation of the context's request; empty if it has none.
func OperationOf(ctx context.Context) string {
	op, _ := ctx.Value(operationKey{}).(string)
	return op
}

type requestKey struct{}

// Request returns the HTTP request, for operations that stream or leave HTTP.
func Request(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

// Identify returns the identity of a request's token. The error is CodeUnauthenticated
// if the token is invalid.
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

// by returns a context whose changes are recorded in the audit log under a user who has
// no session yet.
func by(ctx context.Context, u api.User) context.Context {
	return WithIdentity(ctx, Identity{ID: u.Meta.ID, Name: u.Meta.Name})
}

// touchEvery is how often the use of a key or session is recorded.
const touchEvery = time.Hour

// touch records the use of a key or session, at most once an hour. An error is ignored,
// and the write must not delay the request by much.
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

// WithStale returns a context for a request that asked for this node's state.
func WithStale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// isStale reports whether the request asked for this node's state: the node may have
// lost its connection to the cluster, and a write would only wait.
func isStale(ctx context.Context) bool { return ctx.Value(staleKey{}) != nil }

// stored returns the object that a token refers to, or errRefused if it does not exist.
func stored[T any](ctx context.Context, a *Authenticator, kind api.Kind, id string) (T, error) {
	t, there, err := api.Find[T](ctx, a.opts.Store, kind, id)
	if err == nil && !there {
		err = errRefused
	}
	return t, err
}

// authenticate returns the identity of a token. All errors that the caller causes are
// the same.
func (a *Authenticator) authenticate(ctx context.Context, token string, now time.Time) (Identity, error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return Identity{}, errRefused
	}
	return a.identity(ctx, id, func(hash string) bool { return sameHash(secret, hash) }, now)
}

// Resume returns the identity of a session or an API key whose token was presented
// before. The error is CodeUnauthenticated if it is no longer valid.
func (a *Authenticator) Resume(ctx context.Context, id string) (Identity, error) {
	return a.identity(ctx, id, func(string) bool { return true }, a.opts.Now())
}

// identity returns the identity of a session or an API key, if proves accepts one of
// its hashes.
func (a *Authenticator) identity(ctx context.Context, id string, proves func(hash string) bool, now time.Time) (Identity, error) {
	switch kind, _ := api.KindOfID(id); kind {
	case api.KindAPIKey:
		return a.keyIdentity(ctx, id, proves, now)
	case api.KindSession:
		return a.sessionIdentity(ctx, id, proves, now)
	}
	return Identity{}, errRefused
}

// keyIdentity returns the identity of an API key.
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
			// After any change of the key, a client that still has the right must start
			// again.
			return err != nil || e.Type == api.EventRemove || now.Meta.DeletedAt != nil || string(api.Encode(now.Spec)) != spec
		},
	}, nil
}

// Caller returns the caller's identity. It panics without one, so that an operation
// that bypassed the guard cannot act.
func Caller(ctx context.Context) Identity { return ctx.Value(identityKey{}).(Identity) }

// IsOperator reports whether a request was authenticated as an operator's.
func IsOperator(ctx context.Context) bool {
	id, known := ctx.Value(identityKey{}).(Identity)
	return known && id.Role == api.RoleOperator
}
