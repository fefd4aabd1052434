package server

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// A request with ?dryRun=all is answered as it would be without, and changes nothing:
// handlers do what they always do, and what they write goes to Store.Try. So no handler
// can forget it, and none knows of it but those that make a secret.

// dryRunParameter is the query parameter's name, and dryRunAll its only value.
const (
	dryRunParameter = "dryRun"
	dryRunAll       = "all"
)

type dryRunKey struct{}

// withDryRun puts into the context that a request is a dry run. An operation that has
// none refuses to be asked for one, or it would change what the caller wanted to stay.
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

// dryRun reports whether the request is one.
func dryRun(ctx context.Context) bool { return ctx.Value(dryRunKey{}) != nil }

// trying is the store that only tries what dry runs write.
type trying struct{ Store }

// Apply implements Store.
func (s trying) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if dryRun(ctx) {
		return s.Try(ctx, b)
	}
	return s.Store.Apply(ctx, b)
}

// unsealed are secrets that dry runs do not seal: the first that is sealed makes the
// cluster's keys. Nobody is shown what is sealed, so it is nothing.
type unsealed struct{ auth.Secrets }

// Seal implements auth.Secrets.
func (s unsealed) Seal(ctx context.Context, secret string) (string, error) {
	if dryRun(ctx) {
		return "", nil
	}
	return s.Secrets.Seal(ctx, secret)
}

// unlessDry is a volume's key, of which a dry run makes none.
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

// onlyOnce is a secret for the answer that makes it; a dry run makes none.
func onlyOnce(ctx context.Context, secret string) string {
	if dryRun(ctx) {
		return ""
	}
	return secret
}
