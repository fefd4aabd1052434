package api

import "time"

// MaxSupportGrant limits how far ahead a support grant may expire.
const MaxSupportGrant = 30 * 24 * time.Hour

// ValidateSupportGrant checks the spec of a new support grant.
func ValidateSupportGrant(s SupportGrantSpec, now time.Time) error {
	var bad faults
	if !s.ExpiresAt.After(now) || s.ExpiresAt.After(now.Add(MaxSupportGrant)) {
		bad.note(invalid("spec.expiresAt", "is %s, want a time in the next 30 days", s.ExpiresAt.UTC().Format(time.RFC3339)))
	}
	bad.note(text("spec.reason", s.Reason))
	return bad.err()
}

// Allows reports whether the grant is valid at a time.
func (g SupportGrant) Allows(now time.Time) bool {
	return g.Meta.DeletedAt == nil && now.Before(g.Spec.ExpiresAt)
}
