package api

// ValidateProject checks a spec.
func ValidateProject(s ProjectSpec) error {
	return joined(text("spec.displayName", s.DisplayName), ValidateQuota(s.Quota))
}
