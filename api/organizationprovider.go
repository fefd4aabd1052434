package api

import (
	"cmp"
	"slices"
)

// A provider with an organization (meta.organization) is managed by the admins of that
// organization. They decide everything that it says: it may name any subject, e-mail
// address and group. What it says must therefore have no effect outside of the organization.

// UsersOrganization returns the organization of the users that a provider creates, and of
// the groups whose members it decides: its own, or the one that an operator has set.
func (p IdentityProvider) UsersOrganization() string {
	return cmp.Or(p.Meta.Organization, p.Spec.Organization)
}

// Admits reports whether a provider may sign in a user. One of an organization may sign in
// users of that organization whose own roles every admin of the organization could grant.
// Groups give no other roles, so they need not be checked.
func (p IdentityProvider) Admits(u User) bool {
	if p.Meta.Organization == "" {
		return true
	}
	beyond := func(g Grant) bool {
		return g.Organization != p.Meta.Organization || !slices.Contains(groupRoles, g.Role)
	}
	return u.Meta.Organization == p.Meta.Organization && !slices.ContainsFunc(u.Spec.Grants, beyond)
}

// IdentityIssuer returns the issuer of the external identities of a provider. It contains
// the provider's ID, except for OpenID Connect providers of operators: an entity ID of SAML
// proves nothing, and two organizations may register the same issuer, each with its own
// client.
func (p IdentityProvider) IdentityIssuer() string {
	switch {
	case p.Spec.SAML != nil:
		return "saml:" + p.Meta.ID
	case p.Meta.Organization != "":
		return "oidc:" + p.Meta.ID
	}
	return p.Spec.Issuer
}

// AddressName returns the part of the SAML addresses of a provider that identifies it: its
// name, or its ID if it belongs to an organization, where names are unique only within that.
func (p IdentityProvider) AddressName() string {
	if p.Meta.Organization != "" {
		return p.Meta.ID
	}
	return p.Meta.Name
}

func validateOwnedProvider(m Meta, s IdentityProviderSpec, bad *faults) {
	if s.Organization != "" {
		bad.note(invalid("spec.organization", "the users of a provider of an organization belong to that organization").WithHint("omit it"))
	}
	if len(s.Redirects) > 0 {
		bad.note(invalid("spec.redirects", "browsers return from a provider of an organization to the portals of the organization only").WithHint("omit it"))
	}
}

// validateClaimedGrant checks a grant that the claims of a provider give.
func validateClaimedGrant(at string, m Meta, g Grant) error {
	if m.Organization == "" {
		return validateRole(g.Role, g.Organization, g.Project, at+"role", at+"organization", at+"project")
	}
	return validateLocalGrant(at, "a provider of an organization", m, g)
}
