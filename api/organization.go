package api

// ValidateOrganization checks a spec.
func ValidateOrganization(s OrganizationSpec) error {
	return firstError(text("spec.displayName", s.DisplayName))
}
