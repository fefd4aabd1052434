package api

import (
	"crypto/sha256"
	"encoding/hex"
)

// PaymentType is the direction of a payment.
type PaymentType string

// Types of payments.
const (
	PaymentIn  PaymentType = "payment"
	PaymentOut PaymentType = "refund"
)

// DefaultPayment fills in what was left out.
func DefaultPayment(s PaymentSpec) PaymentSpec {
	if s.Type == "" {
		s.Type = PaymentIn
	}
	return s
}

// ValidatePayment checks a spec.
func ValidatePayment(s PaymentSpec) error {
	var bad faults
	if s.Reference == "" {
		bad.note(invalid("spec.reference", "a reference is required").WithHint("its name outside of Basalt, e.g. the bank's transaction number: recording it twice has then no effect"))
	}
	bad.note(oneOf("spec.type", s.Type, PaymentIn, PaymentOut), currency(s.Currency),
		between("spec.amountMicros", s.AmountMicros, 1, maxPriceMicros, " millionths"),
		text("spec.reference", s.Reference), text("spec.note", s.Note))
	return bad.err()
}

// SamePayment reports whether both describe the same transfer. The time of receipt is
// ignored, since the server fills it in.
func SamePayment(a, b PaymentSpec) bool {
	return a.Type == b.Type && a.Currency == b.Currency && a.AmountMicros == b.AmountMicros && a.Reference == b.Reference
}

// PaymentClaim returns the claim that makes a reference unique within an organization.
func PaymentClaim(org OrganizationID, s PaymentSpec) []string {
	sum := sha256.Sum256([]byte(s.Reference))
	return []string{"payment/" + string(org) + "/" + hex.EncodeToString(sum[:])}
}
