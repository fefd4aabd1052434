package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// IdentityProviders are the collection of kind IdentityProvider.
func (a *API) IdentityProviders() Collection[api.IdentityProvider] {
	return Collection[api.IdentityProvider]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListIdentityProviders(ctx, &api.ListIdentityProvidersParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetIdentityProvider(ctx, ref)
		},
		create: func(ctx context.Context, o api.IdentityProvider) (*http.Response, error) {
			return a.gen.CreateIdentityProvider(ctx, o)
		},
		update: func(ctx context.Context, id string, o api.IdentityProvider) (*http.Response, error) {
			return a.gen.UpdateIdentityProvider(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) {
			return a.gen.DeleteIdentityProvider(ctx, id)
		},
	}
}

// LoginProviders are the names of the identity providers.
func (a *API) LoginProviders(ctx context.Context) ([]string, error) {
	p, err := decode[api.LoginProviders](a.gen.ListLoginProviders(ctx)) //nolint:bodyclose // decode closes it
	return p.Names, err
}

// BeginOIDCLogin with a provider; the browser comes back to redirect.
func (a *API) BeginOIDCLogin(ctx context.Context, provider, redirect string) (api.OIDCFlow, error) {
	return decode[api.OIDCFlow](a.gen.BeginOIDCLogin(ctx, api.OIDCBegin{Provider: provider, Redirect: redirect})) //nolint:bodyclose // decode closes it
}

// FinishOIDCLogin begins a session with what the provider sent back.
func (a *API) FinishOIDCLogin(ctx context.Context, in api.OIDCFinish) (api.Session, error) {
	return decode[api.Session](a.gen.FinishOIDCLogin(ctx, in)) //nolint:bodyclose // decode closes it
}
