package auth

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/oidc"
	"github.com/basalt-gpu/basalt/api/server/pages"
)

// portalReturn is the path of the portal to which providers of organizations send browsers.
const portalReturn = "/login/oidc"

// ListLoginProviders returns the names of the identity providers of operators, or of the
// organization that is named, for a sign-in page. An organization that does not exist has
// none.
func (a *Authenticator) ListLoginProviders(ctx context.Context, organization string) (*api.LoginProviders, error) {
	if organization != "" && !a.flows.take(addressOf(Request(ctx)), a.opts.Now()) {
		return nil, errSlow
	}
	out := api.LoginProviders{Names: []string{}}
	providers, err := a.providersOf(ctx, organization, "")
	for _, p := range providers {
		out.Names = append(out.Names, p.Meta.Name)
	}
	slices.Sort(out.Names)
	return &out, err
}

// providersOf returns the identity providers of operators, or of the organization that is
// named as in a login; all, or those with a name.
func (a *Authenticator) providersOf(ctx context.Context, organization, name string) ([]api.IdentityProvider, error) {
	if len(organization) > maxPlaceBytes {
		return nil, api.Errorf(api.CodeInvalid, "must have at most %d bytes", maxPlaceBytes).At("organization")
	}
	place, err := a.loginPlace(ctx, organization)
	if err != nil || organization != "" && place == "" {
		return nil, err
	}
	var out []api.IdentityProvider
	var broken error
	err = pages.Each(ctx, a.opts.Store, api.ListQuery{Kind: api.KindIdentityProvider, Organization: place, Name: name}, func(o api.Object) bool {
		if o.Meta.Organization != place || o.Meta.DeletedAt != nil { // a query without an organization selects all
			return true
		}
		var p api.IdentityProvider
		p, broken = api.Decode[api.IdentityProvider](o)
		out = append(out, p)
		return broken == nil
	})
	if err == nil {
		err = broken
	}
	return out, err
}

// loginProvider returns the provider that a login begins with, which may redirect to where
// the login wants to return.
func (a *Authenticator) loginProvider(ctx context.Context, in *api.OIDCBegin) (api.IdentityProvider, error) {
	found, err := a.providersOf(ctx, in.Organization, in.Provider)
	if err != nil {
		return api.IdentityProvider{}, err
	}
	if len(found) != 1 || in.Provider == "" {
		return api.IdentityProvider{}, api.Errorf(api.CodeInvalid, "identity provider does not exist").At("provider").WithHint("name the organization too if it is the organization's own")
	}
	p, err := a.returning(ctx, found[0])
	if err == nil && !p.Spec.MayReturnTo(in.Redirect) {
		hint := "an operator can add it to spec.redirects"
		if p.Meta.Organization != "" {
			hint = "it must be " + portalReturn + " of a portal of the organization; an operator sets the portal's address in the mail settings"
		}
		err = api.Errorf(api.CodeInvalid, "the provider is not allowed to redirect there").At("redirect").WithHint("%s", hint)
	}
	return p, err
}

// addressed returns the provider whose SAML addresses contain a name; ok is false if there is
// none.
func (a *Authenticator) addressed(ctx context.Context, name string) (p api.IdentityProvider, ok bool, err error) {
	if api.LooksLikeID(name) {
		if p, ok, err = api.Find[api.IdentityProvider](ctx, a.opts.Store, api.KindIdentityProvider, name); err != nil || !ok || p.Meta.Organization == "" {
			return p, false, err
		}
		p, err = a.returning(ctx, p)
		return p, true, err
	}
	found, err := a.providersOf(ctx, "", name)
	if err != nil || len(found) != 1 || name == "" {
		return p, false, err
	}
	return found[0], true, nil
}

// returning returns a provider with the addresses to which it redirects. The admins of an
// organization cannot choose them: with an address of their own they would receive the codes
// of sign-ins, and whoever begins a sign-in for somebody else could use them.
func (a *Authenticator) returning(ctx context.Context, p api.IdentityProvider) (api.IdentityProvider, error) {
	if p.Meta.Organization == "" {
		return p, nil
	}
	portals, err := a.PortalsFor(ctx, p.Meta.Organization)
	p.Spec.Redirects = nil
	for _, portal := range portals {
		p.Spec.Redirects = append(p.Spec.Redirects, portal+portalReturn)
	}
	return p, err
}

// PortalsFor returns the addresses of the portals in which users of an organization sign in.
func (a *Authenticator) PortalsFor(ctx context.Context, organization string) ([]string, error) {
	m, err := a.MailSettings(ctx)
	if err != nil {
		return nil, err
	}
	return api.PortalsFor(ctx, a.opts.Store, organization, m.Spec.PortalURL)
}

// discovered returns the cache with the metadata of a provider.
func (a *Authenticator) discovered(p api.IdentityProvider) *oidc.ProviderCache {
	if p.Meta.Organization != "" {
		return a.owned
	}
	return a.oidc
}

// claimedBy returns the claims of a user that a provider creates. The address is claimed in
// the whole cluster only if an operator has chosen the provider: others may say any address.
func claimedBy(p api.IdentityProvider, email string) []string {
	if p.Meta.Organization != "" {
		return []string{}
	}
	return api.LoginClaim(email)
}

// linked returns the commands that link a user of a directory to its account at a provider.
// At a provider of an organization a user has one account, so that the provider cannot add
// any number of them: a new link replaces the former one, and those of deleted providers.
func (a *Authenticator) linked(ctx context.Context, p api.IdentityProvider, c person, u api.User) ([]api.Command, error) {
	out := []api.Command{linkOf(p, c, u)}
	if p.Meta.Organization == "" {
		return out, nil
	}
	known, err := pages.All[externalIdentity](ctx, a.opts.Store, api.ListQuery{Kind: api.KindExternalIdentity, Project: u.Meta.ID})
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		_, there, err := api.Find[api.IdentityProvider](ctx, a.opts.Store, api.KindIdentityProvider, k.Spec.Provider)
		if err != nil {
			return nil, err
		}
		if !there || k.Spec.Provider == p.Meta.ID {
			out = append(out, api.Command{Op: api.OpDelete, Kind: api.KindExternalIdentity, ID: k.Meta.ID, Expect: api.AnyRevision})
		}
	}
	return out, nil
}

// externalIdentity is a stored object.
type externalIdentity struct {
	Kind api.Kind
	Meta api.Meta
	Spec api.ExternalIdentitySpec
}

func errBeyond() error {
	return api.Errorf(api.CodeForbidden, "this identity provider may not sign you in: you have roles that its organization does not grant").WithHint("sign in in another way, for example with your password")
}
