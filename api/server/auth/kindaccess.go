package auth

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// The functions below are in the rows of kinds whose objects are seen or owned by other
// rules than those of their readers (Identity.reads).

// hasKey reports whether an SSH key is the caller's: its scope is its user's ID, as for a
// session.
func hasKey(i Identity, o api.Object) bool {
	return i.User != "" && o.Meta.Project == string(i.User)
}

func seesPriceBook(i Identity, o api.Object) bool { return i.chargedBy(o.Meta) }

func ownsPriceBook(i Identity, o api.Object) bool {
	return i.Role == api.RoleOperator || i.resells(o.Meta)
}

func seesOrganization(i Identity, o api.Object) bool {
	return ownsOrganization(i, o) || i.Org != "" && o.Meta.ID == i.Org
}

func ownsOrganization(i Identity, o api.Object) bool {
	return i.Role == api.RoleOperator || i.customer(o.Meta)
}

func reachesProject(i Identity, o api.Object) bool { return i.Reaches(o.Meta.Organization, o.Meta.ID) }

// seesImage reports whether an image is in the caller's scope, or public.
func seesImage(i Identity, o api.Object) bool {
	if i.Reaches(o.Meta.Organization, o.Meta.Project) {
		return true
	}
	image, err := api.Decode[api.Image](o)
	return err == nil && image.Spec.Public && RoleBits[i.Role] != 0
}

// ownsUser refuses a user with more rights elsewhere, who is managed only by callers that
// have those rights too.
func ownsUser(i Identity, o api.Object) bool {
	u, err := api.Decode[api.User](o)
	beyond := func(g api.Grant) bool { return !i.Grants(g.Role, g.Organization, g.Project) }
	return err == nil && i.reads(o.Kind.Info().Readers, o.Meta) && !slices.ContainsFunc(u.Spec.Grants, beyond)
}

// ownsGroup refuses a group with more rights than the caller's: its members have its roles.
func ownsGroup(i Identity, o api.Object) bool {
	g, err := api.Decode[api.Group](o)
	beyond := func(r api.Grant) bool { return !i.Grants(r.Role, r.Organization, r.Project) }
	return err == nil && i.reads(o.Kind.Info().Readers, o.Meta) && !slices.ContainsFunc(g.Spec.Grants, beyond)
}

// ownsKey refuses an API key with a stronger role than the caller's.
func ownsKey(i Identity, o api.Object) bool {
	key, err := api.Decode[api.APIKey](o)
	return err == nil && i.reads(o.Kind.Info().Readers, o.Meta) && i.Grants(key.Spec.Role, o.Meta.Organization, o.Meta.Project)
}
