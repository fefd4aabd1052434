package api

import "slices"

// Role defines what its holder may do; its organization and project define where. Roles
// are not ordered by strength: billing reads what a member cannot.
type Role string

// The roles.
const (
	RoleOperator Role = "operator" // everything
	RoleReseller Role = "reseller" // its organization, and the customers that it created
	RoleAdmin    Role = "admin"    // its organization
	RoleMember   Role = "member"   // its project
	RoleViewer   Role = "viewer"   // reads its project
	RoleBilling  Role = "billing"  // reads what its organization used and owes
)

// Roles returns all roles.
func Roles() []Role {
	return []Role{RoleOperator, RoleReseller, RoleAdmin, RoleMember, RoleViewer, RoleBilling}
}

// grants maps a role to the roles that its holders may grant, none of which has more
// rights.
var grants = map[Role][]Role{
	RoleOperator: Roles(),
	RoleReseller: {RoleReseller, RoleAdmin, RoleMember, RoleViewer, RoleBilling},
	RoleAdmin:    {RoleAdmin, RoleMember, RoleViewer, RoleBilling},
}

// Grants reports whether a holder of the role may grant the role r.
func (by Role) Grants(r Role) bool { return slices.Contains(grants[by], r) }

// validateRole checks a role and the scope that it needs. The field names are those of
// the caller's document.
func validateRole(role Role, organization, project string, roleField, organizationField, projectField string) error {
	if err := oneOf(roleField, role, Roles()...); err != nil {
		return err
	}
	ofProject := role == RoleMember || role == RoleViewer
	switch {
	case role == RoleOperator && (organization != "" || project != ""):
		return invalid(organizationField, "role operator must not have an organization").WithHint("use role admin for an organization")
	case role == RoleOperator:
		return nil
	case ofProject && project == "":
		return invalid(projectField, "role %s requires a project", role).WithHint("name one")
	case organization == "":
		return invalid(organizationField, "role %s requires an organization", role).WithHint("name one")
	case !ofProject && project != "":
		return invalid(projectField, "role %s must not have a project", role).WithHint("use role member for a project")
	}
	return nil
}
