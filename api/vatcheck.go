package api

import (
	"crypto/sha256"
	"time"
)

// VATCheckState is what VIES has answered about a VAT number.
type VATCheckState string

// States of the verification of a VAT number.
const (
	VATPending VATCheckState = "Pending"
	VATValid   VATCheckState = "Valid"
	VATInvalid VATCheckState = "Invalid"
)

// VATHolds is how long after VIES has confirmed it a VAT number counts as confirmed. It is
// verified again long before; this is how long VIES may give no result.
const VATHolds = 60 * 24 * time.Hour

// VATCheckIDOf returns the ID of the verification of an organization's VAT number.
func VATCheckIDOf(org OrganizationID) VATCheckID {
	sum := sha256.Sum256([]byte(org))
	return VATCheckID(NewID(KindVATCheck, sum[:]))
}

// Verified returns the evidence that a number is confirmed at a time, or nil if it is not:
// VIES has not answered about it, not recently, or that it is not valid.
func (c VATCheck) Verified(number string, at time.Time) *VATVerification {
	st := c.Status
	if number == "" || c.Spec.Number != number || st.State != VATValid || st.CheckedAt == nil || at.Sub(*st.CheckedAt) > VATHolds {
		return nil
	}
	return &VATVerification{Number: number, CheckedAt: *st.CheckedAt, Consultation: st.Consultation, Name: st.Name}
}
