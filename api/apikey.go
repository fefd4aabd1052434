package api

import "time"

// ValidateAPIKey checks a spec and the scope (meta's organization and project)
// that its role needs.
func ValidateAPIKey(m Meta, s APIKeySpec, now time.Time) error {
	if err := oneOf("spec.role", s.Role, RoleOperator, RoleAdmin, RoleMember, RoleViewer); err != nil {
		return err
	}
	switch s.Role {
	case RoleOperator:
		if m.Organization != "" || m.Project != "" {
			return invalid("meta.organization", "an operator's key belongs to no organization").WithHint("role admin is an organization's")
		}
	case RoleAdmin:
		if m.Organization == "" {
			return invalid("meta.organization", "an admin's key belongs to an organization").WithHint("name it")
		}
		if m.Project != "" {
			return invalid("meta.project", "an admin's key belongs to no project").WithHint("role member is a project's")
		}
	default:
		if m.Project == "" {
			return invalid("meta.project", "a %s's key belongs to a project", s.Role).WithHint("name it")
		}
	}
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		return invalid("spec.expiresAt", "%s is over", s.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Rank orders roles: higher may more; 0 is no role.
func (r Role) Rank() int {
	switch r {
	case RoleOperator:
		return 4
	case RoleAdmin:
		return 3
	case RoleMember:
		return 2
	case RoleViewer:
		return 1
	}
	return 0
}
