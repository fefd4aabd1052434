package client

import (
	"context"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// LoginProviders returns the names of the identity providers of operators, or of an
// organization.
func (a *API) LoginProviders(ctx context.Context, organization string) ([]string, error) {
	p, err := get[api.LoginProviders](ctx, a, api.ListLoginProvidersParams{Organization: organization}, "login", "oidc")
	return p.Names, err
}

// BeginOIDCLogin begins a login with a provider, which sends the browser back to the
// redirect.
func (a *API) BeginOIDCLogin(ctx context.Context, in api.OIDCBegin) (api.OIDCFlow, error) {
	return post[api.OIDCFlow](ctx, a, in, "login", "oidc")
}

// FinishOIDCLogin begins a session with the provider's response.
func (a *API) FinishOIDCLogin(ctx context.Context, in api.OIDCFinish) (api.Session, error) {
	return post[api.Session](ctx, a, in, "login", "oidc", "finish")
}

// TestIdentityProvider returns what a sign-in with a provider would give.
func (a *API) TestIdentityProvider(ctx context.Context, id string, in api.IdentityProviderTest) (api.IdentityProviderTestResult, error) {
	return post[api.IdentityProviderTestResult](ctx, a, in, "identity-providers", id, "test")
}

// RefusedSignIns returns the sign-ins with a provider that were refused lately, the newest
// first.
func (a *API) RefusedSignIns(ctx context.Context, id string) (api.RefusedSignInList, error) {
	return get[api.RefusedSignInList](ctx, a, nil, "identity-providers", id, "refusals")
}

// SAMLMetadata writes the metadata of the service for a SAML provider, an XML document, to w.
// The provider is given as in its addresses (api.IdentityProvider.AddressName).
func (a *API) SAMLMetadata(ctx context.Context, provider string, w io.Writer) error {
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"login", "saml", provider, "metadata"}})
}
