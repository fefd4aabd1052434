package server

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// A request with ?dryRun=all gets the same response as without, but changes nothing:
// handlers run as usual, and their writes go to Store.Try. Thus a handler cannot forget
// it, and only handlers that generate secrets check for it.

// dryRunParameter is the query parameter's name, and dryRunAll its only value.
const (
	dryRunParameter = "dryRun"
	dryRunAll       = "all"
)

type dryRunKey struct{}

// withDryRun marks the context of a dry run. An operation without dry runs refuses the
// parameter, since ignoring it would make changes that the caller did not want.
func withDryRun(r *http.Request, name string, o operation) (context.Context, error) {
	ctx, values := r.Context(), r.URL.Query()[dryRunParameter]
	switch {
	case len(values) == 0 || r.Method == http.MethodGet:
		return ctx, nil
	case !o.dryRun:
		return ctx, api.Errorf(api.CodeInvalid, "%s has no dry run", name).At(dryRunParameter).WithHint("leave the parameter out")
	}
	for _, v := range values {
		if v != dryRunAll {
			return ctx, api.Errorf(api.CodeInvalid, "dryRun is %.64q, want %q", v, dryRunAll).At(dryRunParameter).
				WithHint("dryRun=%s, or leave it out", dryRunAll)
		}
	}
	return context.WithValue(ctx, dryRunKey{}, true), nil
}

// dryRun reports whether the request is a dry run.
func dryRun(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

// trying wraps the store; writes of dry runs are only tried.
type trying struct{ Store }

// Apply implements Store.
func (s trying) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if dryRun(ctx) {
		return s.Try(ctx, b)
	}
	return s.Store.Apply(ctx, b) //nolint:wrapcheck // the caller says what it writes
}

// unsealed does not seal secrets in dry runs, since the first call of Seal creates the
// cluster's keys. Sealed secrets are never shown, so an empty string suffices.
type unsealed struct{ auth.Secrets }

// Seal implements auth.Secrets.
func (s unsealed) Seal(ctx context.Context, secret string) (string, error) {
	if dryRun(ctx) {
		return "", nil
	}
	return s.Secrets.Seal(ctx, secret) //nolint:wrapcheck // the caller says what it encrypts
}

// unlessDry wraps newKey so that dry runs generate no volume key.
func unlessDry(newKey func(context.Context) (string, error)) func(context.Context) (string, error) {
	if newKey == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if dryRun(ctx) {
			return "", nil
		}
		return newKey(ctx)
	}
}

// onlyOnce returns a secret for the response that creates it; empty in a dry run.
func onlyOnce(ctx context.Context, secret string) string {
	if dryRun(ctx) {
		return ""
	}
	return secret
}
