package api

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// GroupSource is what decides the members of a group.
type GroupSource string

// The sources of groups.
const (
	GroupLocal            GroupSource = "local"             // admins
	GroupIdentityProvider GroupSource = "identity-provider" // the claims of an identity provider, at each sign-in
	GroupScim             GroupSource = "scim"              // a directory, by SCIM
)

// Limits of a group. Its members, projects and identity provider are references, of which
// an object has at most MaxReferences.
const (
	MaxGroupMembers = 1000
	MaxGroupGrants  = 16
)

// groupRoles are the roles that a group may give. Every admin of an organization may
// grant them, so that whoever manages a user may manage the user's groups as well.
var groupRoles = []Role{RoleAdmin, RoleMember, RoleViewer, RoleBilling}

// ValidateGroup checks a spec whose grants and members contain IDs. The roles must be
// within the organization of the group.
func ValidateGroup(m Meta, s GroupSpec) error {
	var bad faults
	bad.note(text("spec.displayName", s.DisplayName))
	bad.note(text("spec.externalId", s.ExternalID))
	if most := 256; utf8.RuneCountInString(s.DisplayName) > most || utf8.RuneCountInString(s.ExternalID) > most {
		bad.note(invalid("spec.displayName", "displayName and externalId must have at most %d characters", most))
	}
	if len(s.Grants) > MaxGroupGrants {
		bad.note(invalid("spec.grants", "has %d grants, want at most %d", len(s.Grants), MaxGroupGrants))
		return bad.err()
	}
	if len(s.Members) > MaxGroupMembers {
		bad.note(invalid("spec.members", "has %d members, want at most %d", len(s.Members), MaxGroupMembers))
		return bad.err()
	}
	for i, g := range s.Grants {
		at := fmt.Sprintf("spec.grants[%d].", i)
		bad.note(validateLocalGrant(at, "a group", m, g))
		if slices.Contains(s.Grants[:i], g) {
			bad.note(invalid(at+"role", "must be listed only once"))
		}
	}
	bad.note(validateGroupSource(s))
	return bad.err()
}

// validateLocalGrant checks a grant that an object of an organization, described by what,
// gives to others: it may be granted by every admin, within the organization.
func validateLocalGrant(at, what string, m Meta, g Grant) error {
	if slices.Contains(Roles(), g.Role) && !slices.Contains(groupRoles, g.Role) {
		return invalid(at+"role", "%s cannot have role %s", what, g.Role).WithHint("want one of %v; grant the role to the user itself", groupRoles)
	}
	if err := validateRole(g.Role, g.Organization, g.Project, at+"role", at+"organization", at+"project"); err != nil {
		return err
	}
	if g.Organization != m.Organization {
		return invalid(at+"organization", "must be the organization of %s, meta.organization", what).WithHint("create one in that organization")
	}
	return nil
}

func validateGroupSource(s GroupSpec) error {
	if err := oneOf("spec.source", s.Source, GroupLocal, GroupIdentityProvider, GroupScim); err != nil {
		return err
	}
	switch external := s.Source == GroupIdentityProvider; {
	case external && s.IdentityProvider == "":
		return invalid("spec.identityProvider", "source %s requires an identity provider", s.Source).WithHint("name one of the organization")
	case !external && s.IdentityProvider != "":
		return invalid("spec.identityProvider", "source %s has no identity provider", s.Source).WithHint("omit it, or set spec.source to %s", GroupIdentityProvider)
	case s.Source == GroupLocal && s.ExternalID != "":
		return invalid("spec.externalId", "source %s has no external ID", s.Source).WithHint("omit it")
	}
	return nil
}

// Gives reports whether the group gives a user a grant.
func (g Group) Gives(user UserID, grant Grant) bool {
	return g.Meta.DeletedAt == nil && grant.Organization == g.Meta.Organization && g.Meta.Organization != "" &&
		slices.Contains(groupRoles, grant.Role) && slices.Contains(g.Spec.Members, user) && slices.Contains(g.Spec.Grants, grant)
}

// ClaimedBy reports whether claims make their subject a member of a group of an identity
// provider.
func (g Group) ClaimedBy(claim string, claims map[string]any) bool {
	value := g.Spec.ExternalID
	if value == "" {
		value = g.Meta.Name
	}
	return claim != "" && claimHolds(claims[claim], value)
}
