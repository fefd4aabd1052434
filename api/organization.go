package api

// MaxOffers limits the offers of a reseller.
const MaxOffers = 64

// MaxOrganizationDepth limits the levels of organizations: a reseller, a reseller that
// is its customer, and a customer of that one. The state machine's quotas cover the
// same depth (appliance/controlplane/store/state/quota.go).
const MaxOrganizationDepth = 3

// ValidateOrganization checks a spec.
func ValidateOrganization(s OrganizationSpec) error {
	var bad faults
	var reason string
	if s.Suspended != nil {
		reason = s.Suspended.Reason
	}
	if len(s.Offers) > MaxOffers {
		bad.note(invalid("spec.offers", "has %d price books, want at most %d", len(s.Offers), MaxOffers))
		return bad.err()
	}
	bad.note(text("spec.displayName", s.DisplayName), text("spec.suspended.reason", reason), ValidateQuota(s.Quota), ValidateBilling(s.Billing))
	return bad.err()
}

// ChangeOrganization checks which fields change: the reseller of a customer cannot.
func ChangeOrganization(old, s OrganizationSpec) error {
	if s.Parent != old.Parent {
		return invalid("spec.parent", "the reseller of an organization cannot change").WithHint("create another organization")
	}
	return nil
}
